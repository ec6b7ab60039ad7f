package dynamo

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Item is a DynamoDB item, its key, or a map within it. The SDK's attributevalue would add 127 KB to a function.
type Item = map[string]types.AttributeValue

// Text returns a string attribute.
func Text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

// Number returns a number attribute.
func Number(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

// Bytes returns a binary attribute.
func Bytes(b []byte) types.AttributeValue { return &types.AttributeValueMemberB{Value: b} }

// TextOf returns the value of a string attribute, or "" for another type.
func TextOf(v types.AttributeValue) string {
	if s, ok := v.(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}

// NumberOf returns the value of an integer attribute.
func NumberOf(v types.AttributeValue) (int64, error) {
	n, ok := v.(*types.AttributeValueMemberN)
	if !ok {
		return 0, fmt.Errorf("attribute of type %T is not a number", v)
	}
	return strconv.ParseInt(n.Value, 10, 64)
}

// BytesOf returns the value of a binary attribute, or nil for another type.
func BytesOf(v types.AttributeValue) []byte {
	if b, ok := v.(*types.AttributeValueMemberB); ok {
		return b.Value
	}
	return nil
}

// ConditionFailed reports whether a write's condition failed, and returns the stored item where the write requests it.
func ConditionFailed(err error) (Item, bool) {
	failed, ok := errors.AsType[*types.ConditionalCheckFailedException](err)
	if !ok {
		return nil, false
	}
	return failed.Item, true
}
