// Package attr makes and reads DynamoDB attribute values. It stands in for the
// SDK's attributevalue package, which brings the types of DynamoDB Streams
// and 127 KB with it into every function.
package attr

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Item is a DynamoDB item, or a part of one.
type Item = map[string]types.AttributeValue

// Text makes a string.
func Text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

// Number makes a number.
func Number(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

// Bytes makes a binary value.
func Bytes(b []byte) types.AttributeValue { return &types.AttributeValueMemberB{Value: b} }

// TextOf reads a string; anything else is "".
func TextOf(v types.AttributeValue) string {
	if s, ok := v.(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}

// NumberOf reads a whole number.
func NumberOf(v types.AttributeValue) (int64, error) {
	n, ok := v.(*types.AttributeValueMemberN)
	if !ok {
		return 0, fmt.Errorf("attribute of type %T is no number", v)
	}
	return strconv.ParseInt(n.Value, 10, 64)
}

// BytesOf reads a binary value; anything else is nil.
func BytesOf(v types.AttributeValue) []byte {
	if b, ok := v.(*types.AttributeValueMemberB); ok {
		return b.Value
	}
	return nil
}

// Refused tells that a write's condition did not hold, and gives what stood
// there where the write asked for it.
func Refused(err error) (Item, bool) {
	var failed *types.ConditionalCheckFailedException
	if !errors.As(err, &failed) {
		return nil, false
	}
	return failed.Item, true
}
