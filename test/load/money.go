package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"svcapi/local/demo"
	"svcapi/shared/credit"
)

// charged is the sum of a ledger's charges for one operation.
type charged struct {
	entries   int
	credits   int64
	uncertain int // of the entries
}

// ledger sums the charges of the projects by operation.
func (s *system) ledger(ctx context.Context) (map[string]charged, error) {
	sums := map[string]charged{}
	for _, name := range spenders {
		for at := s.began.UTC().Truncate(24 * time.Hour); at.Before(time.Now()); at = at.AddDate(0, 0, 1) {
			entries, err := s.stack.Credit.Entries(ctx, demo.ID(name), at.Format(time.DateOnly))
			if err != nil {
				return nil, err
			}
			for _, e := range entries {
				if e.State != credit.Captured {
					continue
				}
				sum := sums[e.Price]
				sum.entries++
				sum.credits += e.Credits
				if e.Uncertain {
					sum.uncertain++
				}
				sums[e.Price] = sum
			}
		}
	}
	return sums, nil
}

// money compares the ledger with the reports: each success on a paid operation charged exactly its price, and nothing
// else charged. money also compares every wallet with its ledger, and returns each difference.
func (s *system) money(ctx context.Context, reports ...*report) (wrong []string, err error) {
	if err := s.settle(ctx); err != nil {
		return nil, err
	}
	sums, err := s.ledger(ctx)
	if err != nil {
		return nil, err
	}
	verified, err := s.stack.Credit.Verify(ctx, nil)
	if err != nil {
		return nil, err
	}
	for _, f := range verified.Findings {
		wrong = append(wrong, fmt.Sprintf("ledger: %s %s %s %s", f.Project, f.Damage, f.Key, f.Detail))
	}
	successes, total := map[string]int{}, 0
	for _, r := range reports {
		for name, n := range r.Paid {
			successes[name] += n
		}
	}
	for name, n := range successes {
		sum := sums[name]
		total += n
		if price := s.stack.Prices.Of(name); sum.entries != n || sum.credits != int64(n)*price {
			wrong = append(wrong, fmt.Sprintf("%s: %d successes at %d credits, the ledger charged %d times, %d credits, %d of them uncertain",
				name, n, price, sum.entries, sum.credits, sum.uncertain))
		}
		delete(sums, name)
	}
	for name, sum := range sums {
		wrong = append(wrong, fmt.Sprintf("%s: charged %d times, and is no paid operation", name, sum.entries))
	}
	fmt.Fprintf(s.out, "\nMoney: %d successes on paid operations; %d wallets with %d ledger entries; %d errors.\n",
		total, verified.Wallets, verified.Entries, len(wrong))
	return wrong, nil
}

// settle runs the settler, as its schedule would, where requests left reservations. Captured reservations that wait for
// the settler on purpose stay: they change no sum.
func (s *system) settle(ctx context.Context) error {
	open := int64(0)
	for _, name := range spenders {
		w, err := s.stack.Credit.Wallet(ctx, demo.ID(name))
		if err != nil {
			return err
		}
		open += w.Reserved
	}
	if open == 0 {
		return nil
	}
	fmt.Fprintf(s.out, "\n%d credits are reserved by requests that have ended: the settler runs.\n", open)
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(11 * time.Second): // SETTLE_AFTER_SECONDS on a laptop, and one
	}
	result, err := s.stack.Invoke(ctx, "SettleFunction", []byte("{}"))
	if err == nil && result.FunctionError != "" {
		err = errors.New(string(result.Payload))
	}
	if err != nil {
		return fmt.Errorf("the settler: %w", err)
	}
	return nil
}
