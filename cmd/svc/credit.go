package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"svcapi/shared/credit"
)

func (a *app) credit() *cobra.Command {
	return group("credit", "Grant credits, show balances and the ledger (1 USD is 1,000,000 credits)",
		a.creditGrant(), a.creditGrants(), a.creditRefund(), a.creditAdjust(), a.creditAlert(), a.creditBalance(), a.creditLedger())
}

func (a *app) creditGrant() *cobra.Command {
	var id, reason string
	cmd := &cobra.Command{
		Use:   "grant PROJECT CREDITS",
		Short: "Add credits to a project's wallet",
		Long: `Add credits to a project's wallet. A grant has an ID and takes effect once: if
the answer is lost, repeat the command with the --id that was printed.`,
		Example: `  svc credit grant acme 10000000 --reason "invoice 2031"`,
		Args:    cobra.ExactArgs(2),
		RunE: a.on(func(ctx context.Context, s *stack, args []string) error {
			credits, err := strconv.ParseInt(args[1], 10, 64)
			if err != nil || credits < 1 {
				return &usageError{"CREDITS is a whole number above 0, not " + strconv.Quote(args[1])}
			}
			m, err := s.movement(ctx, "a grant", args[0], credits, id, reason)
			if err != nil {
				return err
			}
			if err := s.credits.CreateWallet(ctx, m.Project); err != nil {
				return err
			}
			return a.move(ctx, s, "Grant", m, s.credits.Grant)
		}),
	}
	cmd.Flags().StringVar(&id, "id", "", "repeat the grant of this ID")
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the ledger")
	return cmd
}

// movementKey is the key of an operator's movement: a new one, or that of --id,
// as the command printed it.
func movementKey(movement, id, request string) (credit.Key, error) {
	if id == "" {
		return credit.NewKey(time.Now(), request), nil
	}
	key, err := credit.ParseKey(id)
	if err != nil {
		return "", &usageError{"--id is the ID of " + movement + " as this command printed it, not " + strconv.Quote(id)}
	}
	return key, checkDay("--id", key.Time())
}

func (a *app) creditBalance() *cobra.Command {
	return &cobra.Command{
		Use:   "balance PROJECT",
		Short: "Show what a project can spend",
		Args:  cobra.ExactArgs(1),
		RunE: a.on(func(ctx context.Context, s *stack, args []string) error {
			if _, err := s.load(ctx, args[0]); err != nil {
				return err
			}
			balance, err := s.credits.Balance(ctx, args[0])
			if err != nil {
				return err
			}
			return a.print(
				struct {
					ProjectID string `json:"project_id"`
					Balance   int64  `json:"balance"`
				}{args[0], balance},
				table{rows: [][]string{{"Project", args[0]}, {"Balance", grouped(balance) + " credits"}}})
		}),
	}
}

// entryView is a ledger entry as programs read it.
type entryView struct {
	ID          credit.Key   `json:"id"`
	State       credit.State `json:"state"`
	Credits     int64        `json:"credits"`
	Operation   string       `json:"operation"`
	Environment string       `json:"environment"`
	Vendor      string       `json:"vendor"`
	RequestID   string       `json:"request_id"`
	At          time.Time    `json:"at"`
	Uncertain   bool         `json:"uncertain"`
	Actor       string       `json:"actor"`
	Reason      string       `json:"reason"`
	// Refunds is the ID of the charge that a refund gives back.
	Refunds credit.Key `json:"refunds"`
	// Resolution is of a charge that was uncertain.
	Resolution *resolutionView `json:"resolution"`
}

// resolutionView is what an operator decided about an uncertain charge.
type resolutionView struct {
	Verdict credit.Verdict `json:"verdict"`
	Reason  string         `json:"reason"`
	Actor   string         `json:"actor"`
	At      time.Time      `json:"at"`
}

func viewEntry(e credit.Entry) entryView {
	v := entryView{e.Key, e.State, e.Credits, e.Operation, e.Environment, e.Vendor, e.RequestID, e.At.UTC(), e.Uncertain, e.Actor, e.Reason, e.Refunds, nil}
	if e.Resolution.Verdict != "" {
		r := resolutionView(e.Resolution)
		v.Resolution = &r
	}
	return v
}

// effect is what an entry does to the balance, as people read it.
func (e entryView) effect() string {
	switch e.State {
	case credit.Captured, credit.Sending:
		return grouped(-e.Credits)
	case credit.Released:
		return "0"
	}
	if e.Credits < 0 {
		return grouped(e.Credits)
	}
	return "+" + grouped(e.Credits)
}

func (a *app) creditLedger() *cobra.Command {
	var date string
	var days int
	var uncertain bool
	cmd := &cobra.Command{
		Use:   "ledger PROJECT",
		Short: "Show what moved in a project's wallet",
		Example: `  svc credit ledger acme
  svc credit ledger acme --day 2026-03-31 --days 31 --output json
  svc credit ledger acme --uncertain`,
		Args: cobra.ExactArgs(1),
		RunE: a.on(func(ctx context.Context, s *stack, args []string) error {
			last := time.Now().UTC()
			if date != "" {
				var err error
				if last, err = time.Parse(time.DateOnly, date); err != nil {
					return &usageError{"--day is a UTC date such as 2026-03-31, not " + strconv.Quote(date)}
				}
			}
			if days < 1 || days > maxDays {
				return &usageError{fmt.Sprintf("--days is 1 to %d", maxDays)}
			}
			if _, err := s.load(ctx, args[0]); err != nil {
				return err
			}
			entries, err := s.ledger(ctx, args[0], last, days, uncertain)
			if err != nil {
				return err
			}
			views := []entryView{}
			t := table{header: []string{"TIME", "STATE", "CREDITS", "OPERATION", "ENVIRONMENT", "VENDOR", "REQUEST", "NOTE"}, empty: "Nothing moved."}
			for _, e := range entries {
				v := viewEntry(e)
				views = append(views, v)
				t.rows = append(t.rows, []string{
					second(v.At), string(v.State), v.effect(), v.Operation, v.Environment, v.Vendor, v.RequestID, v.note(),
				})
			}
			return a.print(views, t)
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&date, "day", "", "UTC date (default: today)")
	flags.IntVar(&days, "days", 1, "how many days, up to and with that one")
	flags.BoolVar(&uncertain, "uncertain", false, "the uncertain charges of all days instead: a vendor was reached, its answer was not")
	return cmd
}

// maxDays bounds a ledger: each day is a query.
const maxDays = 366

// note is what else there is to say, for people.
func (e entryView) note() string {
	text, actor := e.Reason, e.Actor
	switch {
	case e.Uncertain:
		text = "uncertain"
	case e.Resolution != nil:
		text, actor = fmt.Sprintf("%s: %s", e.Resolution.Verdict, e.Resolution.Reason), e.Resolution.Actor
	case e.Refunds != "":
		text = fmt.Sprintf("%s, for %s", e.Reason, e.Refunds)
	}
	if actor == "" {
		return text
	}
	if text != "" {
		text += ", "
	}
	return text + "by " + actor
}

// ledger reads the entries of some days, oldest first, or the uncertain ones.
func (s *stack) ledger(ctx context.Context, projectID string, last time.Time, days int, uncertain bool) ([]credit.Entry, error) {
	if uncertain {
		return s.credits.Uncertain(ctx, projectID)
	}
	var all []credit.Entry
	for back := days - 1; back >= 0; back-- {
		entries, err := s.credits.Entries(ctx, projectID, last.AddDate(0, 0, -back).Format(time.DateOnly))
		if err != nil {
			return nil, err
		}
		all = append(all, entries...)
	}
	return all, nil
}
