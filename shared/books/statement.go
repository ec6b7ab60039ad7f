package books

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

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
	Prices      []Entry  `json:"prices"` // changes of the project's own prices, oldest first

	from, to time.Time
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
	case e.State == wallet.Repriced && !at.Before(st.from) && at.Before(st.to):
		st.Prices = append(st.Prices, e)
	case line == nil: // an entry of any other state changes nothing
	case at.Before(st.from):
		st.Opening, st.Closing = st.Opening+change, st.Closing+change
	case at.Before(st.to):
		*line, st.Closing = *line+e.Credits, st.Closing+change
	}
}

// Statement returns the statement of the UTC days from that of first to that of last. Statement reads all entries of
// the project, calls progress for each, and compares their sum with what the wallet holds. A difference is
// ErrUnbalanced. Where requests or operators change the wallet meanwhile, the sum is compared as Verify does.
func (s *Store) Statement(
	ctx context.Context, read *Reading, project string, first, last time.Time, progress func(),
) (*Statement, error) {
	st := &Statement{Charges: []Charge{}, Prices: []Entry{}, from: midnight(first), to: midnight(last).AddDate(0, 0, 1)}
	a := newAccount(project, time.Now())
	a.each = func(e Entry) { progress(); st.add(e) }
	item, err := s.Item(ctx, project)
	if err != nil {
		return nil, err
	}
	a.addWallet(item)
	begin := a.began
	err = s.visit(ctx, read, movements, project, time.Unix(0, 0), begin.AddDate(0, 0, 1), func(e Entry) {
		begin = begin.Add(min(0, e.Key.Time().Sub(begin)))
	})
	if err == nil { // no charge precedes the first movement, but clocks differ
		err = s.visit(ctx, read, requests, project, begin.AddDate(0, 0, -1), a.young(), func(e Entry) {
			if !a.isOpen(e.Key) {
				a.each(e)
				a.charged -= effects[requests][e.State] * e.Credits
			}
		})
	}
	if err != nil {
		return nil, err
	}
	before, after, err := s.readMoving(ctx, read, a)
	if err != nil {
		return nil, err
	}
	if held, sum := a.difference(a.read(before, a.began), a.read(after, a.began)); held != sum {
		return nil, fmt.Errorf("%w: the entries of %s add up to %s credits, the wallet holds %s", ErrUnbalanced, project,
			wallet.Grouped(sum), wallet.Grouped(held))
	}
	st.Charges = slices.DeleteFunc(st.Charges, func(c Charge) bool { return c.Credits == 0 })
	slices.SortFunc(st.Charges, func(a, b Charge) int { return cmp.Compare(a.Operation, b.Operation) })
	slices.SortFunc(st.Prices, func(a, b Entry) int { return cmp.Compare(a.Key, b.Key) })
	return st, nil
}
