package books

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"svcapi/shared/dynamo"
	"svcapi/shared/wallet"
)

// ErrNotEmpty reports that a wallet cannot be emptied: it has open leases, or more credits than the adjustment may
// take.
var ErrNotEmpty = errors.New("books: the wallet cannot be emptied")

// emptyTries bounds the attempts of Empty while requests that began before the closing change the wallet.
const emptyTries = 10

// Empty takes all credits out of a project's wallet by one adjustment of up to m.Credits, ends the wallet's alert, and
// returns the credits. Afterwards the wallet has neither credits nor a lease, no request can reserve, and no late write
// moves credits, because the fence of the wallet is raised. Empty returns ErrNotEmpty and changes nothing where a lease
// is open, or where the wallet has more credits. Empty may be repeated: an empty wallet gets no entry.
func (s *Store) Empty(ctx context.Context, m Movement) (int64, error) {
	for range emptyTries {
		item, err := s.Item(ctx, m.Project)
		if err != nil || item == nil {
			return 0, err
		}
		credits, err := dynamo.NumberOf(item["balance"])
		switch {
		case err != nil:
			return 0, fmt.Errorf("books: wallet %s: %w", m.Project, err)
		case len(wallet.PendingOf(item)) > 0:
			return 0, fmt.Errorf("%w: it has open leases", ErrNotEmpty)
		case credits > m.Credits:
			return 0, fmt.Errorf("%w: it has %s credits", ErrNotEmpty, wallet.Grouped(credits))
		}
		update := s.creditUpdate(m.Project, -credits)
		*update.UpdateExpression += ", fence = :fence REMOVE alert"
		*update.ConditionExpression += " AND balance = :least AND size(pending) = :none AND fence = :seen"
		fence := dynamo.TextOf(item["fence"])
		update.ExpressionAttributeValues[":seen"] = dynamo.Text(fence)
		update.ExpressionAttributeValues[":fence"] = dynamo.Text(wallet.Lease{Key: m.ID.Above(fence), Slots: 1}.Name())
		writes := []types.TransactWriteItem{{Update: update}}
		if credits != 0 {
			taken := m
			taken.Credits = -credits
			writes = append(writes, s.operatorPut(movements, m.Project, taken.entry(wallet.Adjustment)))
		}
		_, err = s.client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: writes})
		if err == nil {
			return credits, nil
		}
		if len(cancellationReasons(err)) == 0 {
			return 0, fmt.Errorf("books: empty the wallet: %w", err)
		}
		// A request or an operator has changed the wallet.
	}
	return 0, fmt.Errorf("%w: it changes all the time", ErrNotEmpty)
}
