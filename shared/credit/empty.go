package credit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"svcapi/shared/dynamo"
)

// ErrNotEmpty reports that a wallet cannot be emptied: it has pending reservations, or more credits than the adjustment may
// take.
var ErrNotEmpty = errors.New("credit: the wallet cannot be emptied")

// emptyTries bounds the attempts of Empty while requests that began before the closing change the wallet.
const emptyTries = 10

// Empty takes all credits out of a project's wallet by one adjustment of up to m.Credits, ends the wallet's alert, and returns
// the credits. One transaction over all shards does that, so that afterwards no shard has credits or a pending reservation,
// no request can reserve, and no late write returns credits. Empty returns ErrNotEmpty and changes nothing where a
// reservation is pending, or where the wallet has more credits. Empty may be repeated: an empty wallet gets no entry.
func (s *Store) Empty(ctx context.Context, m Movement) (credits int64, err error) {
	for range emptyTries {
		items, err := s.shardItems(ctx, m.Project)
		if err != nil || len(items) == 0 {
			return 0, err
		}
		var writes []types.TransactWriteItem
		credits = 0
		for wallet, item := range items {
			balance, err := dynamo.NumberOf(item["balance"])
			if err != nil {
				return 0, fmt.Errorf("credit: wallet %s: %w", wallet, err)
			}
			if n := len(pendingOf(item)); n > 0 {
				return 0, fmt.Errorf("%w: it has pending reservations", ErrNotEmpty)
			}
			credits += balance
			update := s.creditUpdate(wallet, -balance)
			*update.UpdateExpression += " REMOVE alert ADD moves :one"
			*update.ConditionExpression += " AND balance = :least AND size(pending) = :none"
			update.ExpressionAttributeValues[":one"] = dynamo.Number(1)
			moves, _ := dynamo.NumberOf(item["moves"]) // absent until the first move
			unmoved(update, moves)
			writes = append(writes, types.TransactWriteItem{Update: update})
		}
		if credits > m.Credits {
			return 0, fmt.Errorf("%w: it has %s credits", ErrNotEmpty, Grouped(credits))
		}
		if credits != 0 {
			writes = append(writes, s.operatorPut(movements, m.Project, Entry{
				Key: m.ID, State: Adjustment, Credits: -credits, RequestID: m.RequestID, At: time.Now(), Actor: m.Actor, Reason: m.Reason,
			}))
		}
		_, err = s.client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: writes})
		if err == nil {
			return credits, nil
		}
		if len(cancellationReasons(err)) == 0 {
			return 0, fmt.Errorf("credit: empty the wallet: %w", err)
		}
		if err := pause(ctx); err != nil { // a request or an operator has changed the wallet
			return 0, err
		}
	}
	return 0, fmt.Errorf("%w: it changes all the time", ErrNotEmpty)
}
