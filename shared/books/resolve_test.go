package books_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"svcapi/shared/books"
	"svcapi/shared/dynamo"
	"svcapi/shared/wallet"
	"svcapi/test/enginetest"
	"svcapi/test/wallettest"
)

const (
	smsPrice = 10_000
	granted  = 50_000
)

// charge is a project "p" with one uncertain SMS.
type charge struct {
	*wallettest.Fixture
	key wallet.Key
}

func newCharge(t *testing.T) *charge {
	t.Helper()
	c := &charge{Fixture: wallettest.New(t, granted)}
	c.key = c.captured("p", "uncertain", "capture uncertain")
	return c
}

// captured charges one SMS of a project and returns the key of the charge.
func (c *charge) captured(project, requestID, capture string) wallet.Key {
	r := wallettest.Reservation(smsPrice, true)
	r.Project, r.RequestID = project, requestID
	for _, step := range []string{"reserve", "mark", capture, "remove"} {
		c.Must(wallettest.Steps[step](c.T.Context(), c.Store, r))
	}
	return r.Key
}

// want checks the wallet, the list of uncertain charges, and what the ledger holds of the charge.
func (c *charge) want(t *testing.T, verdict books.Verdict, actor string) {
	t.Helper()
	balance, refunds := int64(granted-smsPrice), 0
	if verdict == books.VerdictRefunded {
		balance, refunds = granted, 1
	}
	wallettest.WantBalance(t, c.Store, balance)
	open, err := c.Uncertain(t.Context(), "p")
	if err != nil || (len(open) == 0) == (verdict == "") {
		t.Errorf("%d uncertain charges, %v, after the verdict %q", len(open), err, verdict)
	}
	found, err := c.Entries(t.Context(), "p", c.key.Time(), time.Now())
	c.Must(err)
	for _, e := range found {
		switch {
		case e.Key == c.key:
			if e.State != wallet.Captured || e.Uncertain != (verdict == "") || e.Resolution.Verdict != verdict ||
				e.Resolution.Actor != actor || e.Credits != smsPrice {
				t.Errorf("the charge's entry is %+v, want %q by %q", e, verdict, actor)
			}
			if verdict != "" && (e.Resolution.Reason != "because" || time.Since(e.Resolution.At) > time.Minute) {
				t.Errorf("the resolution is %+v", e.Resolution)
			}
		case e.State == wallet.Refunded:
			refunds--
			if e.Refunds != c.key || e.Credits != smsPrice || e.Actor != actor || e.Reason != "because" ||
				e.RequestID != "uncertain" || e.Price != wallet.SMS {
				t.Errorf("the refund's entry is %+v", e)
			}
		}
	}
	if refunds != 0 {
		t.Errorf("%d refunds too few", refunds)
	}
}

func by(actor string, v books.Verdict) books.Resolution {
	return books.Resolution{Verdict: v, Reason: "because", Actor: actor}
}

// TestResolve checks that an uncertain charge stays until an operator resolves it, and that a refund pays once
// (docs/decisions/money.md#uncertain-sms, docs/decisions/money.md#ledger).
func TestResolve(t *testing.T) {
	for _, c := range []struct{ first, other books.Verdict }{
		{books.VerdictConfirmed, books.VerdictRefunded},
		{books.VerdictRefunded, books.VerdictConfirmed},
	} {
		t.Run(string(c.first), func(t *testing.T) {
			t.Parallel()
			charge := newCharge(t)
			charge.want(t, "", "")
			for _, actor := range []string{"anne", "ben"} { // the second one finds it done
				entry, err := charge.Resolve(t.Context(), "p", charge.key, by(actor, c.first))
				if err != nil || entry.Resolution.Actor != "anne" || entry.Key != charge.key {
					t.Fatalf("%s: %+v, %v", actor, entry, err)
				}
				charge.want(t, c.first, "anne")
			}
			again := func() {
				if _, err := charge.Resolve(t.Context(), "p", charge.key, by("ben", c.other)); !errors.Is(err, books.ErrResolved) {
					t.Errorf("%v, want ErrResolved", err)
				}
			}
			again()
			charge.want(t, c.first, "anne")
			// A function that was taken over lists the charge again: its resolution stays the only one.
			charge.Change(charge.Names.Ledger, enginetest.LedgerKey("p", charge.key),
				"SET uncertain = :v", dynamo.Item{":v": dynamo.Text("p")})
			again()
			wallettest.WantBalance(t, charge.Store, map[books.Verdict]int64{books.VerdictConfirmed: granted - smsPrice,
				books.VerdictRefunded: granted}[c.first])
		})
	}
}

// TestResolveRefuses checks that only an uncertain charge can be resolved, and only within its wallet.
func TestResolveRefuses(t *testing.T) {
	t.Parallel()
	c := newCharge(t)
	certain := c.captured("p", "certain", "capture")
	for _, r := range []struct {
		name    string
		project string
		key     wallet.Key
		verdict books.Verdict
		want    error
	}{
		{"a certain charge", "p", certain, books.VerdictRefunded, books.ErrNotUncertain},
		{"a certain charge, confirmed", "p", certain, books.VerdictConfirmed, books.ErrNotUncertain},
		{"another project's", "q", c.key, books.VerdictRefunded, books.ErrNotUncertain},
		{"an unknown key", "p", wallet.NewKey(time.Now(), "x"), books.VerdictRefunded, books.ErrNotUncertain},
		{"no verdict", "p", c.key, "", nil},
	} {
		_, err := c.Resolve(t.Context(), r.project, r.key, by("anne", r.verdict))
		if err == nil || r.want != nil && !errors.Is(err, r.want) {
			t.Errorf("%s: %v, want %v", r.name, err, r.want)
		}
	}
	wallettest.WantBalance(t, c.Store, granted-2*smsPrice)
}

// TestResolveAtOnce checks that operators who resolve a charge at once refund it once, and get the same verdict.
func TestResolveAtOnce(t *testing.T) {
	t.Parallel()
	const operators = 8
	for round := range 5 {
		c := newCharge(t)
		var wg sync.WaitGroup
		var mu sync.Mutex
		ended := map[books.Verdict]int{}
		var actor string
		for i := range operators {
			verdict := books.VerdictRefunded
			if round > 0 && i%2 == 0 { // the first round has refunds only
				verdict = books.VerdictConfirmed
			}
			wg.Go(func() {
				for { // a conflict of transactions is an error: the operator repeats the command
					entry, err := c.Resolve(context.Background(), "p", c.key, by("anne", verdict))
					if err != nil && !errors.Is(err, books.ErrResolved) {
						continue
					}
					mu.Lock()
					ended[entry.Resolution.Verdict]++
					actor = entry.Resolution.Actor
					mu.Unlock()
					return
				}
			})
		}
		wg.Wait()
		if len(ended) != 1 {
			t.Errorf("operators saw %v", ended)
		}
		for verdict := range ended {
			c.want(t, verdict, actor)
		}
	}
}

// TestResolveLost checks that a repeated resolution takes effect once, whichever call is lost or late.
func TestResolveLost(t *testing.T) {
	t.Parallel()
	for _, verdict := range []books.Verdict{books.VerdictConfirmed, books.VerdictRefunded} {
		for _, list := range []string{"x", "d", "u", "dx", "xd", "ddd", "xxx"} {
			t.Run(string(verdict)+"/"+list, func(t *testing.T) {
				t.Parallel()
				c, fails := newCharge(t), list == "xxx" // only the first call fails
				lost := &wallettest.Faults{Of: "UpdateItem TransactWriteItems", List: list}
				store := c.Over(lost)
				if _, err := store.Resolve(t.Context(), "p", c.key, by("anne", verdict)); (err != nil) != fails {
					t.Fatalf("the first call: %v", err)
				}
				if fails {
					c.want(t, "", "")
				}
				if _, err := store.Resolve(t.Context(), "p", c.key, by("anne", verdict)); err != nil {
					t.Fatalf("the second call: %v", err)
				}
				c.want(t, verdict, "anne")
				lost.DeliverLate(t)
				c.want(t, verdict, "anne")
			})
		}
	}
}

// TestResolveKeepsTheBooks checks that a charge is not resolved as refunded where its credits cannot be returned.
func TestResolveKeepsTheBooks(t *testing.T) {
	t.Parallel()
	c := &charge{Fixture: wallettest.New(t, 0)}
	for project, want := range map[string]error{"full": books.ErrOutOfRange, "gone": books.ErrNoWallet} {
		c.Project(project, most)
		key := c.captured(project, "request", "capture uncertain")
		if project == "gone" {
			c.Drop(c.Names.Wallets, dynamo.Item{"pk": dynamo.Text(project)})
		} else {
			c.Must(c.Grant(t.Context(), wallettest.Movement(project, time.Now(), "more", 1)))
		}
		if _, err := c.Resolve(t.Context(), project, key, by("anne", books.VerdictRefunded)); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", project, err, want)
		}
		if open, err := c.Uncertain(t.Context(), project); err != nil || len(open) != 1 || open[0].Key != key {
			t.Errorf("%s: open %v, %v", project, open, err)
		}
	}
}

// TestRefundCharge checks that a charge is refunded once, however often the refund is repeated. An uncertain charge is
// resolved and not refunded; a charge that its resolution refunded, or a missing charge, is not refunded either.
func TestRefundCharge(t *testing.T) {
	t.Parallel()
	b := newAccount(t)
	b.uncertain("p", "open", "")
	b.uncertain("p", "confirmed", books.VerdictConfirmed)
	b.Must(b.Mark(t.Context(), b.reserve("p", "marked", true)))
	b.keys["missing"] = wallet.NewKey(time.Now(), "missing")
	balance, err := b.Balance(t.Context(), "p")
	b.Must(err)
	for _, test := range []struct {
		name     string
		want     error
		returned int64
	}{
		{"captured", nil, 30},
		{"confirmed", nil, 30},
		{"to refund", nil, 0}, // refunded before
		{"uncertain", books.ErrResolved, 0},
		{"open", books.ErrUncertain, 0},
		{"marked", books.ErrNotCharged, 0},
		{"pending", books.ErrNotCharged, 0},
		{"grant", books.ErrNotCharged, 0},
		{"missing", books.ErrNotCharged, 0},
	} {
		balance += test.returned
		for range 2 {
			if _, err := b.RefundCharge(t.Context(), "p", b.keys[test.name], "late", "anne"); !errors.Is(err, test.want) {
				t.Errorf("%s: %v", test.name, err)
			}
		}
		wallettest.WantBalance(t, b.Store, balance)
	}
	// A function can put a refunded charge on the list again: no resolution refunds the charge a second time.
	b.change("captured", "SET uncertain = :v", dynamo.Item{":v": dynamo.Text("p")})
	if _, err := b.Resolve(t.Context(), "p", b.keys["captured"],
		by("anne", books.VerdictRefunded)); !errors.Is(err, books.ErrResolved) {
		t.Errorf("a resolution after a refund: %v", err)
	}
	wallettest.WantBalance(t, b.Store, balance)
}

// TestRefundDay checks that a refund belongs to the day on which the refund was made and changes no day before that
// day, and that operators who refund a charge at the same time refund the charge once.
func TestRefundDay(t *testing.T) {
	t.Parallel()
	c := &charge{Fixture: wallettest.New(t, granted)}
	r := wallettest.Reservation(smsPrice, false)
	r.Began, r.Units = time.Now().AddDate(0, 0, -40), 6
	for _, step := range []string{"reserve", "capture", "remove"} {
		c.Must(wallettest.Steps[step](t.Context(), c.Store, r))
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for { // a conflict of transactions is an error: the operator repeats the command
				if _, err := c.RefundCharge(context.Background(), "p", r.Key, "late", "anne"); err == nil {
					return
				}
			}
		})
	}
	wg.Wait()
	closed, err := c.Entries(t.Context(), "p", r.Key.Time(), time.Now().AddDate(0, 0, -30))
	c.Must(err)
	if len(closed) != 1 || closed[0].Key != r.Key || closed[0].Units != 6 {
		t.Errorf("the days before have %+v, want the charge alone", closed)
	}
	made, err := c.Entries(t.Context(), "p", time.Now().Add(-time.Minute), time.Now())
	c.Must(err)
	if len(made) != 1 || made[0].State != wallet.Refunded || made[0].Refunds != r.Key ||
		time.Since(made[0].Key.Time()) > time.Minute {
		t.Errorf("today has %+v, want the refund alone", made)
	}
	wallettest.WantBalance(t, c.Store, granted)
	wallettest.WantSound(t, c.Store)
}
