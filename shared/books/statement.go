package books

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"svcapi/shared/dynamo"
	"svcapi/shared/wallet"
)

// ErrUnbalanced reports that a wallet does not hold the sum of its entries.
var ErrUnbalanced = errors.New("books: wallet and ledger differ")

// Statement says how a project's credits changed in some days. Its balances include pending reservations.
type Statement struct {
	Opening     int64    `json:"opening_balance"`
	Grants      int64    `json:"grants"`
	Adjustments int64    `json:"adjustments"`
	Charges     []Charge `json:"charges"`
	Refunds     int64    `json:"refunds"`
	Closing     int64    `json:"closing_balance"`

	from, to time.Time
	later    int64 // the change after the days
}

// Charge is what a statement charges for one operation.
type Charge struct {
	Operation string `json:"operation"`
	Credits   int64  `json:"credits"`
}

// add adds an entry that Visit passes.
func (st *Statement) add(e Entry) {
	change := e.Credits
	line := map[wallet.State]*int64{wallet.Granted: &st.Grants, wallet.Adjustment: &st.Adjustments,
		wallet.Refunded: &st.Refunds}[e.State]
	if e.State == wallet.Captured {
		i := slices.IndexFunc(st.Charges, func(c Charge) bool { return c.Operation == e.Price })
		if i < 0 {
			i, st.Charges = len(st.Charges), append(st.Charges, Charge{Operation: e.Price})
		}
		change, line = -e.Credits, &st.Charges[i].Credits
	}
	switch at := e.Key.Time(); {
	case line == nil: // an entry of any other state changes nothing
	case at.Before(st.from):
		st.Opening, st.Closing = st.Opening+change, st.Closing+change
	case at.Before(st.to):
		*line, st.Closing = *line+e.Credits, st.Closing+change
	default:
		st.later += change
	}
}

// Statement returns the statement of the UTC days from that of first to that of last. Statement reads all entries of
// the project, calls progress for each, and compares their sum with what the wallet holds. A difference is
// ErrUnbalanced. Where requests are charged meanwhile, the sum is between what the wallet held before and after the
// entries of the last half hour were read.
func (s *Store) Statement(
	ctx context.Context, read *Reading, project string, first, last time.Time, progress func(),
) (*Statement, error) {
	st := &Statement{Charges: []Charge{}, from: midnight(first), to: midnight(last).AddDate(0, 0, 1)}
	epoch, begin, end, young := time.Unix(0, 0), time.Now(), time.Now().AddDate(0, 0, 1), time.Now().Add(-stuckAfter)
	add := func(e Entry) { progress(); st.add(e) }
	err := s.visit(ctx, read, movements, project, epoch, end, func(e Entry) {
		begin = begin.Add(min(0, e.Key.Time().Sub(begin)))
	})
	if err == nil { // no charge precedes the first movement, but clocks differ
		err = s.visit(ctx, read, requests, project, begin.AddDate(0, 0, -1), young, add)
	}
	most, before, failed := s.held(ctx, project)
	for of, from := range map[entryTable]time.Time{movements: epoch, resolutions: epoch, requests: young} {
		err = cmp.Or(err, failed)
		if err == nil {
			err = s.visit(ctx, read, of, project, from, end, add)
		}
	}
	least, after, failed := s.held(ctx, project)
	sum := st.Closing + st.later
	switch err = cmp.Or(err, failed); {
	case err != nil:
	case before != after:
		err = fmt.Errorf("books: the wallet of %s changed during the read: repeat it", project)
	case sum < least || sum > most:
		err = fmt.Errorf("%w: the entries of %s add up to %s credits, the wallet holds %s", ErrUnbalanced, project,
			wallet.Grouped(sum), wallet.Grouped(most))
	}
	st.Charges = slices.DeleteFunc(st.Charges, func(c Charge) bool { return c.Credits == 0 })
	slices.SortFunc(st.Charges, func(a, b Charge) int { return cmp.Compare(a.Operation, b.Operation) })
	return st, err
}

// held returns what a project's wallet holds, the leases included as far as they are not spent, and the sum of the
// operators' movements.
func (s *Store) held(ctx context.Context, project string) (credits, granted int64, err error) {
	item, err := s.Item(ctx, project)
	if err != nil || item == nil {
		return 0, 0, err
	}
	credits, invalid := dynamo.NumberOf(item["balance"])
	leases := wallet.LeasesOf(item, func(_ string, failed error) { invalid = cmp.Or(invalid, failed) })
	if invalid != nil {
		return 0, 0, fmt.Errorf("books: wallet %s: %w", project, invalid)
	}
	granted, _ = dynamo.NumberOf(item["granted"]) // absent until the first movement
	unspent, err := s.Unspent(ctx, leases, wallet.Captured)
	return credits + unspent, granted, err
}
