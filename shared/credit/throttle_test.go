package credit_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"svcapi/shared/credit"
	"svcapi/shared/dynamo"
)

// TestThrottled checks that a write which DynamoDB turned away for lack of capacity takes no effect, so that it is not
// ambiguous and leaves nothing in the wallet: every write pays for the whole wallet, and what overload leaves there would keep
// the project down until it is settled (docs/decisions/money.md#write-retries).
func TestThrottled(t *testing.T) {
	t.Parallel()
	const had, price = 100, 30
	always := strings.Repeat("t", 1000)
	for _, test := range []struct {
		name       string
		with       string // in the calls that the faults are of
		faults     string
		fails      bool  // Reserve
		attempts   int   // that may have taken effect
		updates    int64 // of those calls, in all; 0: as many as the time allows
		balance    int64
		anyPending bool
	}{
		{"not at all", "", "", false, 1, 2, had - price, false},
		{"a reservation, twice", "", "tt", false, 1, 4, had - price, false},
		{"a reservation, always: nothing is there to be given back", "", always, true, 0, 0, had, false},
		{"a reservation, and one attempt was lost: its key stays for the settling function", "", "xt", false, 2, 3, had - price, true},
		{"a reservation, and one attempt had a server's error: the same", "", "t5", false, 2, 3, had - price, true},
		{"a reservation, always, but for one attempt that was lost: it is given back", "balance - ", "tx" + always, true, 2, 0, had, false},
		{"a reservation of a hot wallet, three times: nothing is there to be given back", "", "hthh", true, 0, 4, had, false},
		{"a reservation of a hot wallet, twice", "", "hth", false, 1, 5, had - price, false},
		{"the removal from a hot wallet, many times", "", ".hhhhhhhh", false, 1, 10, had - price, false},
		{"the removal, many times", "", ".tttttttt", false, 1, 10, had - price, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			direct := newFixture(t, 1, had)
			f := &faults{of: "UpdateItem", with: test.with, list: test.faults}
			store := direct.over(f)
			if test.fails {
				store = store.WithLimits(credit.Limits{Write: 500 * time.Millisecond})
			}

			r := reservation(price, false)
			if err := store.Reserve(t.Context(), r); (err != nil) != test.fails || r.Attempts != test.attempts {
				t.Errorf("reserve: %v, %d attempts", err, r.Attempts)
			}
			if !test.fails {
				if err := store.Capture(t.Context(), r, credit.Outcome{}); err != nil {
					t.Fatal(err)
				}
				store.Remove(t.Context(), r)
			}
			wantBalance(t, direct.Store, test.balance)
			left := pending(t, direct.Store)
			if calls := f.calls.Load(); (len(left) > 0) != test.anyPending || test.updates > 0 && calls != test.updates || calls == 0 {
				t.Errorf("%d updates; pending: %+v", calls, left)
			}
		})
	}
}

// TestThrottledSteps checks that the longest burst of throttles, before each write of a request, changes neither the end of
// the request nor its charge (docs/decisions/money.md#write-retries).
func TestThrottledSteps(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		end     string
		balance int64
		state   credit.State
	}{{"capture", 70, credit.Captured}, {"release", 100, credit.Released}} {
		t.Run(test.end, func(t *testing.T) {
			t.Parallel()
			direct := newFixture(t, 1, 100)
			f := &faults{of: "UpdateItem PutItem", list: strings.Repeat(strings.Repeat("t", 20)+".", 4)}
			r := reservation(30, true)
			if err := take(t, direct.over(f), r, "reserve", "mark", test.end); err != nil || r.Attempts != 1 {
				t.Errorf("%v after %d attempts", err, r.Attempts)
			}
			wantBalance(t, direct.Store, test.balance)
			if got := entry(t, direct.Store, r); got.State != test.state || f.calls.Load() < 3*21 {
				t.Errorf("entry %q after %d calls", got.State, f.calls.Load())
			}
		})
	}
}

// TestRemovalEnds checks that a removal without capacity ends before the response (docs/decisions/money.md#remove).
func TestRemovalEnds(t *testing.T) {
	direct := newFixture(t, 1, 100)
	limits := credit.Limits{Write: time.Second, Remove: 300 * time.Millisecond}
	r := reservation(30, false)
	if err := errors.Join(direct.Reserve(t.Context(), r), direct.Capture(t.Context(), r, credit.Outcome{})); err != nil {
		t.Fatal(err)
	}
	store := direct.over(&faults{of: "UpdateItem", list: strings.Repeat("t", 1000)}).WithLimits(limits)
	began := time.Now()
	store.Remove(context.WithoutCancel(t.Context()), r)
	if took := time.Since(began); took < limits.Remove/2 || took > 2*limits.Remove {
		t.Errorf("the removal took %s, its limit is %s", took, limits.Remove)
	}
}

// TestRefusalCosts checks that a wallet with one shard refuses with one write, and a wallet with more shards after two more
// reads.
func TestRefusalCosts(t *testing.T) {
	t.Parallel()
	for shards, want := range map[int]int64{0: 1, 1: 1, 2: 3, 8: 3} {
		direct := newFixture(t, max(shards, 1), 0)
		through := &faults{}
		store := direct.over(through)
		err := store.Reserve(t.Context(), inShards(shards, 30, "request"))
		if !errors.Is(err, credit.ErrInsufficientCredits) || through.calls.Load() != want {
			t.Errorf("%d shards: %d calls, %v; want %d", shards, through.calls.Load(), err, want)
		}
	}
}

// TestMovementCosts checks that a movement is one call, whether or not the wallet accepts it. Only a movement that needs the
// credits of other shards reads them.
func TestMovementCosts(t *testing.T) {
	t.Parallel()
	direct := newFixture(t, 2, 100)
	for i, test := range []struct {
		move    func(*credit.Store, context.Context, credit.Movement) error
		credits int64
		err     error
	}{
		{(*credit.Store).Grant, 5, nil},
		{(*credit.Store).Grant, most, credit.ErrOutOfRange},
		{(*credit.Store).Adjust, 5, nil},
		{(*credit.Store).Adjust, most, credit.ErrOutOfRange},
		{(*credit.Store).Adjust, -5, nil},
	} {
		through := &faults{}
		m := movementOf("p", time.Now(), fmt.Sprint(i), test.credits)
		if err := test.move(direct.over(through), t.Context(), m); !errors.Is(err, test.err) || through.calls.Load() != 1 {
			t.Errorf("%d: %d calls, %v; want 1, %v", i, through.calls.Load(), err, test.err)
		}
	}
}

// TestLateCopyAfterRebalancing checks that a lost attempt finds its key when it arrives after its shard got the credits and
// the repeated reservation was captured there.
func TestLateCopyAfterRebalancing(t *testing.T) {
	t.Parallel()
	rebalanced := false
	for i := range 8 {
		direct := newFixture(t, 2, 100)
		f := &faults{of: "UpdateItem", list: "x"}
		store := direct.over(f)
		r := inShards(2, 30, fmt.Sprint("request ", i))
		if err := errors.Join(store.Reserve(t.Context(), r), store.Capture(t.Context(), r, credit.Outcome{})); err != nil {
			t.Fatal(err)
		}
		store.Remove(t.Context(), r)
		rebalanced = rebalanced || r.Wallet == "p#1"
		if left := pending(t, direct.Store); r.Attempts != 2 || len(left) != 1 {
			t.Errorf("shard %s: %d attempts, %d pending; want 2, 1: the key stays for the late copy", r.Wallet, r.Attempts, len(left))
		}
	}
	if !rebalanced {
		t.Error("no reservation went to the empty shard")
	}
}

// TestRebalancing checks that a request looks again for credits that others moved first, and that a failed rebalancing is no
// lack of credits.
func TestRebalancing(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, faults string
		fails        bool
	}{
		{"others were first", "cc", false},
		{"no capacity, many times", strings.Repeat("t", 20), false},
		{"no response", "xxx", true},
	} {
		direct := newFixture(t, 2, 1000)
		f := &faults{of: "TransactWriteItems", list: test.faults}
		store := direct.over(f)
		for i := 0; f.calls.Load() == 0 && i < 30; i++ { // until one comes to the empty shard
			err := store.Reserve(t.Context(), inShards(2, 10, fmt.Sprint("request ", i)))
			if failed := err != nil; failed != (test.fails && f.calls.Load() > 0) || errors.Is(err, credit.ErrInsufficientCredits) {
				t.Errorf("%s: %v after %d calls", test.name, err, f.calls.Load())
			}
		}
		if f.calls.Load() < int64(len(test.faults)) {
			t.Errorf("%s: %d calls", test.name, f.calls.Load())
		}
	}
}

// TestRebalancingEnds checks that a request for which credits never come together looks for them as long as the limit allows:
// others moved the credits first each time, or DynamoDB has no capacity for a read of the shards.
func TestRebalancingEnds(t *testing.T) {
	t.Parallel()
	direct := newFixture(t, 2, 1000)
	var empty *credit.Reservation // of a request whose shard has no credits
	for i := 0; empty == nil; i++ {
		r := inShards(2, 10, fmt.Sprint("request ", i))
		if err := errors.Join(direct.Reserve(t.Context(), r), direct.Release(t.Context(), r)); err != nil {
			t.Fatal(err)
		}
		if r.Wallet == "p#1" {
			empty = inShards(2, 600, r.RequestID) // more than the even share that moved
		}
	}
	for _, test := range []struct {
		name    string
		through aws.HTTPClient
		want    error
	}{
		{"moved", &faults{of: "TransactWriteItems", list: strings.Repeat("c", 100_000)}, credit.ErrInsufficientCredits},
		{"no capacity", &unprocessed{1_000_000}, context.DeadlineExceeded},
	} {
		for _, limit := range []time.Duration{50 * time.Millisecond, 500 * time.Millisecond} {
			began, r := time.Now(), *empty
			err := direct.over(test.through).WithLimits(credit.Limits{Write: time.Second, Rebalance: limit}).Reserve(t.Context(), &r)
			if took := time.Since(began); !errors.Is(err, test.want) || took < limit || took > limit+credit.DefaultLimits.Rebalance {
				t.Errorf("%s, within %s: %v after %s", test.name, limit, err, took)
			}
		}
	}
	wantBalance(t, direct.Store, 1000)
}

// unprocessed responds to the first reads of several items as if there were no capacity for any of them.
type unprocessed struct{ times int }

func (u *unprocessed) Do(r *http.Request) (*http.Response, error) {
	if !strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".BatchGetItem") || u.times == 0 {
		return http.DefaultClient.Do(r)
	}
	u.times--
	var asked struct{ RequestItems json.RawMessage }
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		return nil, err
	}
	body := `{"Responses":{},"UnprocessedKeys":` + string(asked.RequestItems) + `}`
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

// TestUnprocessed checks that shards for which there was no capacity are read again, until the time is over.
func TestUnprocessed(t *testing.T) {
	t.Parallel()
	direct := newFixture(t, 3, 100)
	lacking := func(times int) *credit.Store {
		return direct.over(&unprocessed{times})
	}
	wantBalance(t, lacking(3), 100)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := lacking(1_000_000).Balance(ctx, "p"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("without end: %v", err)
	}
}

// torn is how a read of several shards may come out while credits move between them: the first reads see what shard 1 had
// given, and not yet what shard 2 got.
type torn struct{ reads, calls int }

func (c *torn) Do(r *http.Request) (*http.Response, error) {
	response, err := http.DefaultClient.Do(r)
	if err != nil || !strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".BatchGetItem") {
		return response, err
	}
	if c.calls++; c.calls > c.reads {
		return response, nil
	}
	var out struct {
		Responses map[string][]map[string]map[string]string
	}
	err = errors.Join(json.NewDecoder(response.Body).Decode(&out), response.Body.Close())
	for _, items := range out.Responses {
		for _, item := range items {
			if item["pk"]["S"] == "p#1" {
				item["balance"] = map[string]string{"N": "0"}
				item["moves"] = map[string]string{"N": fmt.Sprint(100 + c.calls)}
			}
		}
	}
	body, failed := json.Marshal(out)
	response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	response.Header.Del("X-Amz-Crc32")
	return response, errors.Join(err, failed)
}

// TestTornRead checks that a balance is the balance of one moment, or of the last read where no moment was without a move.
func TestTornRead(t *testing.T) {
	t.Parallel()
	direct := newFixture(t, 2, 100)
	spread(t, direct.Store, "p")
	for reads, want := range map[int]struct {
		balance int64
		calls   int
	}{0: {100, 2}, 1: {100, 3}, 2: {100, 4}, 1000: {50, 4}} {
		c := &torn{reads: reads}
		store := direct.over(c)
		if balance, err := store.Balance(t.Context(), "p"); err != nil || balance != want.balance || c.calls != want.calls {
			t.Errorf("%d torn reads: %d after %d looks, %v; want %+v", reads, balance, c.calls, err, want)
		}
	}
}

// TestRebalancingTakesNoMore checks that a shard which was spent from since the read gives nothing, and that each move counts
// in both shards, so that two reads show the move.
func TestRebalancingTakesNoMore(t *testing.T) {
	t.Parallel()
	direct := newFixture(t, 2, 100)
	spent := false
	store := direct.over(&faults{before: func(call string) {
		if call == "TransactWriteItems" && !spent {
			spent = true
			if err := direct.Adjust(t.Context(), movementOf("p", time.Now(), "spend", -90)); err != nil {
				t.Error(err)
			}
		}
	}})
	for i := 0; !spent; i++ { // until one comes to the empty shard
		r := inShards(2, 20, fmt.Sprint(i))
		err := store.Reserve(t.Context(), r)
		if spent != errors.Is(err, credit.ErrInsufficientCredits) || !spent && err != nil {
			t.Fatalf("spent %t: %v", spent, err)
		}
		if err == nil {
			if err := direct.Release(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		}
	}
	moves := func() (counts [2]string) {
		for shard, wallet := range []string{"p", "p#1"} {
			out, err := direct.client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &direct.names.Wallets, Key: dynamo.Item{"pk": dynamo.Text(wallet)}})
			if err != nil {
				t.Fatal(err)
			}
			if n, ok := out.Item["moves"].(*types.AttributeValueMemberN); ok {
				counts[shard] = n.Value
			}
		}
		return counts
	}
	wantBalance(t, direct.Store, 10)
	if got := moves(); got != [2]string{} {
		t.Errorf("moves %v before the first", got)
	}
	for i := 0; moves() == [2]string{} && i < 50; i++ {
		r := inShards(2, 2, fmt.Sprint("small ", i))
		if err := errors.Join(direct.Reserve(t.Context(), r), direct.Release(t.Context(), r)); err != nil {
			t.Fatal(err)
		}
	}
	if got := moves(); got != [2]string{"1", "1"} {
		t.Errorf("moves %v after the first", got)
	}
}
