package credit_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"svcapi/shared/credit"
	"svcapi/shared/dynamo"
	"svcapi/test/enginetest"
	"svcapi/test/faultproxy"
)

const (
	smsPrice = 10_000
	granted  = 50_000
)

// charge is a project "p" with one uncertain SMS, and the way to its tables, straight or through a
// proxy that causes the faults of lose.
type charge struct {
	*credit.Store
	key    credit.Key
	faulty *credit.Store

	mu   sync.Mutex
	lose []faultproxy.Fault // of the next writes, one each; nothing left: delivered
	lost []*faultproxy.Request
}

func newCharge(t *testing.T) *charge {
	t.Helper()
	client, tables := enginetest.Client(t)
	names := credit.Tables{Wallets: tables.Wallets, Ledger: tables.Ledger}
	c := &charge{Store: credit.NewStore(client, names)}
	proxy, err := faultproxy.Start(enginetest.URL(t), c.decide)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Close)
	c.faulty = credit.NewStore(dynamo.NewClient(aws.Config{
		Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
	}, func(o *dynamodb.Options) { o.BaseEndpoint = aws.String(proxy.URL("operator")) }), names)

	ctx := t.Context()
	if err := c.CreateWallet(ctx, "p"); err != nil {
		t.Fatal(err)
	}
	if err := c.Grant(ctx, credit.Movement{Project: "p", ID: credit.NewKey(time.Now().AddDate(0, 0, -3), "grant"), Credits: granted, Actor: "test"}); err != nil {
		t.Fatal(err)
	}
	c.key = c.captured(t, "uncertain", true)
	return c
}

// captured is the key of one SMS that was charged.
func (c *charge) captured(t *testing.T, requestID string, uncertain bool) credit.Key {
	t.Helper()
	r := &credit.Reservation{
		Project: "p", Key: credit.NewKey(time.Now(), requestID), Credits: smsPrice, Operation: credit.SMS,
		Environment: "production", RequestID: requestID, Irrevocable: true,
	}
	err := c.Reserve(t.Context(), r)
	if err == nil {
		err = c.Mark(t.Context(), r)
	}
	if err == nil {
		err = c.Capture(t.Context(), r, credit.Outcome{Uncertain: uncertain, Vendor: "quicksend"})
	}
	if err != nil {
		t.Fatal(err)
	}
	c.Remove(t.Context(), r)
	return r.Key
}

func (c *charge) decide(r *faultproxy.Request) faultproxy.Fault {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.Operation == "GetItem" || len(c.lose) == 0 {
		return faultproxy.Deliver
	}
	fault := c.lose[0]
	c.lose = c.lose[1:]
	if fault == faultproxy.DropRequest {
		c.lost = append(c.lost, r)
	}
	return fault
}

// deliverLate lets every dropped request arrive after all.
func (c *charge) deliverLate(t *testing.T) {
	t.Helper()
	for _, r := range c.lost {
		if err := r.Deliver(t.Context()); err != nil {
			t.Error(err)
		}
	}
	c.lost = nil
}

// want checks the wallet, the list of uncertain charges, and what the ledger says of the charge.
func (c *charge) want(t *testing.T, verdict credit.Verdict, actor string) {
	t.Helper()
	balance, refunds := int64(granted-smsPrice), 0
	if verdict == credit.VerdictRefunded {
		balance, refunds = granted, 1
	}
	if got, err := c.Balance(t.Context(), "p"); err != nil || got != balance {
		t.Errorf("balance %d, %v; want %d", got, err, balance)
	}
	open, err := c.Uncertain(t.Context(), "p")
	if err != nil || (len(open) == 0) == (verdict == "") {
		t.Errorf("%d uncertain charges, %v, after the verdict %q", len(open), err, verdict)
	}
	var found []credit.Entry
	for _, day := range slices.Compact([]string{c.key.Day(), time.Now().UTC().Format(time.DateOnly)}) { // midnight
		entries, err := c.Entries(t.Context(), "p", day)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, entries...)
	}
	for _, e := range found {
		switch {
		case e.Key == c.key:
			if e.State != credit.Captured || e.Uncertain != (verdict == "") || e.Resolution.Verdict != verdict || e.Resolution.Actor != actor || e.Credits != smsPrice {
				t.Errorf("the charge's entry is %+v, want %q by %q", e, verdict, actor)
			}
			if verdict != "" && (e.Resolution.Reason != "because" || time.Since(e.Resolution.At) > time.Minute) {
				t.Errorf("the resolution is %+v", e.Resolution)
			}
		case e.State == credit.Refunded:
			refunds--
			if e.Refunds != c.key || e.Credits != smsPrice || e.Actor != actor || e.Reason != "because" || e.RequestID != "uncertain" || e.Operation != credit.SMS {
				t.Errorf("the refund's entry is %+v", e)
			}
		}
	}
	if refunds != 0 {
		t.Errorf("%d refunds too few", refunds)
	}
}

func by(actor string, v credit.Verdict) credit.Resolution {
	return credit.Resolution{Verdict: v, Reason: "because", Actor: actor}
}

// TestResolve checks that an uncertain charge stays until an operator resolves it, and that a refund pays once
// (docs/decisions.md#uncertain-sms, docs/decisions.md#ledger).
func TestResolve(t *testing.T) {
	for _, c := range []struct{ first, other credit.Verdict }{
		{credit.VerdictConfirmed, credit.VerdictRefunded},
		{credit.VerdictRefunded, credit.VerdictConfirmed},
	} {
		t.Run(string(c.first), func(t *testing.T) {
			charge := newCharge(t)
			charge.want(t, "", "")
			for _, actor := range []string{"anne", "ben"} { // the second one finds it done
				entry, err := charge.Resolve(t.Context(), "p", charge.key, by(actor, c.first))
				if err != nil || entry.Resolution.Actor != "anne" || entry.Key != charge.key {
					t.Fatalf("%s: %+v, %v", actor, entry, err)
				}
				charge.want(t, c.first, "anne")
			}
			if _, err := charge.Resolve(t.Context(), "p", charge.key, by("ben", c.other)); !errors.Is(err, credit.ErrResolved) {
				t.Errorf("%v, want ErrResolved", err)
			}
			charge.want(t, c.first, "anne")
		})
	}
}

// TestResolveRefuses checks that only an uncertain charge can be resolved, and only within its wallet.
func TestResolveRefuses(t *testing.T) {
	c := newCharge(t)
	certain := c.captured(t, "certain", false)
	for _, r := range []struct {
		name    string
		project string
		key     credit.Key
		verdict credit.Verdict
		want    error
	}{
		{"a certain charge", "p", certain, credit.VerdictRefunded, credit.ErrNotUncertain},
		{"a certain charge, confirmed", "p", certain, credit.VerdictConfirmed, credit.ErrNotUncertain},
		{"another project's", "q", c.key, credit.VerdictRefunded, credit.ErrNotUncertain},
		{"an unknown key", "p", credit.NewKey(time.Now(), "x"), credit.VerdictRefunded, credit.ErrNotUncertain},
		{"no verdict", "p", c.key, "", nil},
	} {
		_, err := c.Resolve(t.Context(), r.project, r.key, by("anne", r.verdict))
		if err == nil || r.want != nil && !errors.Is(err, r.want) {
			t.Errorf("%s: %v, want %v", r.name, err, r.want)
		}
	}
	if got, err := c.Balance(t.Context(), "p"); err != nil || got != granted-2*smsPrice {
		t.Errorf("balance %d, %v", got, err)
	}
}

// TestResolveAtOnce checks that operators who resolve one charge at the same time refund it once, and that all of them get
// the final verdict.
func TestResolveAtOnce(t *testing.T) {
	const operators = 8
	for round := range 5 {
		c := newCharge(t)
		var wg sync.WaitGroup
		var mu sync.Mutex
		ended := map[credit.Verdict]int{}
		var actor string
		for i := range operators {
			verdict := credit.VerdictRefunded
			if round > 0 && i%2 == 0 { // the first round has refunds only
				verdict = credit.VerdictConfirmed
			}
			wg.Go(func() {
				for { // a conflict of transactions is an error: the operator repeats the command
					entry, err := c.Resolve(context.Background(), "p", c.key, by("anne", verdict))
					if err != nil && !errors.Is(err, credit.ErrResolved) {
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

// TestResolveLost checks that a repeated resolution takes effect once, whichever call is lost, and that late copies change
// nothing.
func TestResolveLost(t *testing.T) {
	t.Parallel()
	const drop, lost, half = faultproxy.DropRequest, faultproxy.DropResponse, faultproxy.CutResponse
	for _, verdict := range []credit.Verdict{credit.VerdictConfirmed, credit.VerdictRefunded} {
		for _, c := range []struct {
			name  string
			lose  []faultproxy.Fault
			fails bool // the first call does; the second one is undisturbed
		}{
			{"the request once", []faultproxy.Fault{drop}, false},
			{"the response once", []faultproxy.Fault{lost}, false},
			{"half of the response", []faultproxy.Fault{half}, false},
			{"the response, then the request", []faultproxy.Fault{lost, drop}, false},
			{"the request, then the response", []faultproxy.Fault{drop, lost}, false},
			{"every response", []faultproxy.Fault{lost, lost, lost}, false},
			{"every request", []faultproxy.Fault{drop, drop, drop}, true},
		} {
			t.Run(string(verdict)+"/"+c.name, func(t *testing.T) {
				t.Parallel()
				charge := newCharge(t)
				charge.lose = c.lose
				if _, err := charge.faulty.Resolve(t.Context(), "p", charge.key, by("anne", verdict)); (err != nil) != c.fails {
					t.Fatalf("the first call: %v", err)
				}
				if c.fails {
					charge.want(t, "", "")
				}
				if _, err := charge.faulty.Resolve(t.Context(), "p", charge.key, by("anne", verdict)); err != nil {
					t.Fatalf("the second call: %v", err)
				}
				charge.want(t, verdict, "anne")
				charge.deliverLate(t)
				charge.want(t, verdict, "anne")
			})
		}
	}
}
