package credit

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"svcapi/cmd/svc/app"
	"svcapi/shared/books"
	"svcapi/shared/project"
	"svcapi/shared/project/admin"
	"svcapi/shared/wallet"
)

// effect returns the change of the balance by the entry.
func effect(e books.Entry) int64 {
	switch e.State {
	case wallet.Captured, wallet.Sending:
		return -e.Credits
	case wallet.Released:
		return 0
	}
	return e.Credits
}

// Note formats the reason and the actor of an entry.
func Note(e books.Entry) string {
	text, actor := e.Reason, e.Actor
	switch {
	case e.Uncertain:
		text = "uncertain"
	case e.Resolution.Verdict != "":
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

func ledger(a *app.App) *cobra.Command {
	var days app.Days
	var uncertain bool
	cmd := a.ProjectCommand(&cobra.Command{
		Use:   "ledger PROJECT",
		Short: "Show the ledger entries of a project",
		Long: `Show the ledger entries of a project: what changed its balance, and released SMS.
Entries with which the settling function releases unused credits are not shown.`,
		Example: `  svc credit ledger acme
  svc credit ledger acme --day yesterday
  svc credit ledger acme --month 2026-03 --output csv
  svc credit ledger acme --from 2025-01-01 --to today --output json
  svc credit ledger acme --uncertain`,
	}, days.Parse, func(ctx context.Context, s *app.Stack, rec *project.Record) error {
		read := func() ([]books.Entry, error) { return s.Credits.Entries(ctx, rec.ID, days.First, days.Last) }
		if uncertain {
			read = func() ([]books.Entry, error) { return s.Credits.Uncertain(ctx, rec.ID) }
		}
		entries, err := read()
		if err != nil {
			return err
		}
		entries = slices.DeleteFunc(entries, func(e books.Entry) bool { return e.State == wallet.Released && e.Price == "" })
		header := []string{"ID", "TIME", "STATE", "CREDITS", "USD", "OPERATION", "ENVIRONMENT", "VENDOR", "VENDOR ID",
			"REQUEST", "NOTE", "REFERENCE"}
		t := app.Table{Header: header, Empty: "No entries."}
		return app.PrintList(s.App, t, entries, func(e books.Entry) (books.Entry, []string) {
			e.Credits = effect(e)
			credits, dollars := s.Number(e.Credits), app.Dollars(e.Credits)
			if e.Credits > 0 && !s.CSV() {
				credits, dollars = "+"+credits, "+"+dollars
			}
			return e, []string{
				string(e.Key), s.Time(e.At), string(e.State), credits, dollars,
				e.Price, e.Environment, e.Vendor, e.VendorID, e.RequestID, Note(e), e.Reference,
			}
		})
	})
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		err := run(cmd, args)
		if args[0] == "verify" && errors.Is(err, admin.ErrNotFound) {
			err = app.Failf(app.ExitNotFound, `"svc ledger verify" compares the wallets with the ledger.`, "%v", err)
		}
		return err
	}
	days.AddFlags(cmd)
	cmd.Flags().BoolVar(&uncertain, "uncertain", false,
		"show the uncertain charges of all days: a vendor may have carried out the request")
	return cmd
}

// LedgerCommand returns "svc ledger".
func LedgerCommand(a *app.App) *cobra.Command {
	return app.Group("ledger", "Audit the wallets against the ledger", verify(a))
}

func verify(a *app.App) *cobra.Command {
	return a.Command(&cobra.Command{
		Use:   "verify",
		Short: "Recompute every wallet from the ledger and report what differs",
		Long: `Recompute every wallet from the ledger and report what differs:

  balance + pending without a capture + captures - refunds - adjustments = grants

Grants, refunds, adjustments and resolutions count in the tables that no function may
write; one that is in the ledger is reported as forged, and counts nothing.

The command reads all wallets and entries, changes nothing, and may run while the
service runs. Exit code 1 means that the command has found a difference; docs/restore.md
says what a person may repair.`,
	}, nil, runVerify)
}

func runVerify(ctx context.Context, s *app.Stack) error {
	step := s.Progress("reading", 0)
	verified, err := s.Credits.Verify(ctx, step)
	if err != nil {
		return err
	}
	views, rows := app.List(verified.Findings, func(f books.Finding) (books.Finding, []string) {
		return f, []string{f.Project, string(f.Damage), string(f.Key), f.Detail}
	})
	t := app.Table{Header: []string{"PROJECT", "DAMAGE", "ID", "DETAIL"}, Rows: rows,
		Empty: "Every wallet agrees with its ledger."}
	err = s.Print(map[string]any{"wallets": verified.Wallets, "entries": verified.Entries, "findings": views}, t)
	s.Note("%s, %s.", app.Count(verified.Wallets, "wallet", "wallets"),
		app.Count(verified.Entries, "ledger entry", "ledger entries"))
	if err != nil {
		return err
	}
	return app.Problems(len(views))
}
