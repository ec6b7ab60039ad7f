package credit_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"svcapi/shared/credit"
	"svcapi/shared/dynamo"
)

// TestEmpty checks that an emptied wallet has no credits, reservations and alert in any shard, and that what requests and
// operators do between the read and the transaction is neither lost nor taken (docs/decisions/money.md#closed-projects).
func TestEmpty(t *testing.T) {
	ctx, shards := context.Background(), 3
	reserve := func(s *credit.Store) (*credit.Reservation, error) {
		r := inShards(shards, 600, fmt.Sprint(time.Now().UnixNano())) // more than one shard has
		return r, s.Reserve(ctx, r)
	}
	move := func(do func(context.Context, credit.Movement) error, credits int64) error {
		return do(ctx, movementOf("p", time.Now(), fmt.Sprint(time.Now().UnixNano()), credits))
	}
	for name, test := range map[string]struct {
		meanwhile func(*credit.Store) error
		faults    string // of the transaction
		want      int64  // credits; -1: refused
		left      int64
	}{
		"nothing":   {func(*credit.Store) error { return nil }, "", 900, 0},
		"a request": {func(s *credit.Store) error { _, err := reserve(s); return err }, "", -1, 300},
		"a request and as many credits, in one shard": {func(s *credit.Store) error {
			_, err := reserve(s)
			return errors.Join(err, move(s.Grant, 600))
		}, "", -1, 900},
		"a request that fails": {func(s *credit.Store) error {
			r, err := reserve(s)
			return errors.Join(err, s.Release(ctx, r))
		}, "", 900, 0},
		"a request that is charged": {func(s *credit.Store) error {
			r, err := reserve(s)
			err = errors.Join(err, s.Capture(ctx, r, credit.Outcome{}))
			s.Remove(ctx, r)
			return err
		}, "", 300, 0},
		"a grant":                    {func(s *credit.Store) error { return move(s.Grant, 1) }, "", -1, 901},
		"another adjustment":         {func(s *credit.Store) error { return move(s.Adjust, -400) }, "", 500, 0},
		"a response that is lost":    {func(*credit.Store) error { return nil }, "dddddddd", 0, 0},
		"a late copy":                {func(*credit.Store) error { return nil }, "xxxxxxxx", 900, 0},
		"transactions that conflict": {func(*credit.Store) error { return nil }, "cc", 900, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if shards = 3; strings.HasSuffix(name, "in one shard") {
				shards = 1
			}
			f, done := newFixture(t, shards, 900), false
			f.must(f.SetAlert(ctx, "p", 5000))
			network := &faults{of: "TransactWriteItems", with: "size(pending)", list: test.faults, before: func(operation string) {
				if operation == "TransactWriteItems" && !done {
					done = true
					f.must(test.meanwhile(f.Store))
				}
			}}
			got, err := f.over(network).Empty(ctx, movementOf("p", time.Now(), "closed", 900))
			if len(test.faults) > dynamo.Attempts {
				if err == nil {
					t.Fatal("a response came")
				}
				got, err = f.Empty(ctx, movementOf("p", time.Now(), "again", 900))
			}
			if test.want < 0 != errors.Is(err, credit.ErrNotEmpty) || test.want >= 0 && (err != nil || got != test.want) {
				t.Errorf("%d, %v; want %d", got, err, test.want)
			}
			wantBalance(t, f.Store, test.left)
			wantSound(t, f.Store)
			if test.want < 0 {
				return
			}
			if got, err := f.Empty(ctx, movementOf("p", time.Now(), "once more", 0)); got != 0 || err != nil {
				t.Errorf("an empty wallet: %d, %v", got, err)
			}
			if _, err := reserve(f.Store); !errors.Is(err, credit.ErrInsufficientCredits) {
				t.Errorf("a request of the emptied wallet: %v", err)
			}
			if network.lost != nil { // the credits of a project that was opened again stay
				f.must(move(f.Grant, 900))
				network.deliverLate(t)
				wantBalance(t, f.Store, 900)
				wantSound(t, f.Store)
				return
			}
			if w, err := f.Wallet(ctx, "p"); err != nil || w.Alert != 0 || len(pending(t, f.Store)) != 0 {
				t.Errorf("%+v, %v", w, err)
			}
		})
	}
}
