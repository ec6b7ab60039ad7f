package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"svcapi/shared/credit"
)

func (a *app) ledgerGroup() *cobra.Command {
	return group("ledger", "Audit the wallets against the ledger", a.ledgerVerify())
}

// problemsError is an examination that found something; what it found has been printed.
type problemsError struct{ count int }

func (e *problemsError) Error() string {
	if e.count == 1 {
		return "1 problem"
	}
	return fmt.Sprintf("%d problems", e.count)
}

type damageView struct {
	ProjectID string        `json:"project_id"`
	Damage    credit.Damage `json:"damage"`
	ID        credit.Key    `json:"id"`
	Detail    string        `json:"detail"`
}

func (a *app) ledgerVerify() *cobra.Command {
	return &cobra.Command{
		Use:   "verify",
		Short: "Recompute every wallet from the ledger and report what differs",
		Long: `Recompute every wallet from the ledger and report what differs:

  balance + pending without a capture + captures - refunds - adjustments = grants

It reads both tables whole, changes nothing, and may run while the service does.
Exit code 1: something was found.`,
		Args: cobra.NoArgs,
		RunE: a.on(func(ctx context.Context, s *stack, _ []string) error {
			step := a.progress("reading", 0)
			verified, err := s.credits.Verify(ctx, func(int) { step() })
			if a.hidden != nil {
				fmt.Fprintln(a.errs)
			}
			if err != nil {
				return err
			}
			views := []damageView{}
			t := table{header: []string{"PROJECT", "DAMAGE", "ID", "DETAIL"}, empty: "Every wallet is what its ledger says."}
			for _, f := range verified.Findings {
				v := damageView{f.Project, f.Damage, f.Key, f.Detail}
				views = append(views, v)
				t.rows = append(t.rows, []string{v.ProjectID, string(v.Damage), string(v.ID), v.Detail})
			}
			err = a.print(struct {
				Wallets  int          `json:"wallets"`
				Entries  int          `json:"entries"`
				Findings []damageView `json:"findings"`
			}{verified.Wallets, verified.Entries, views}, t)
			a.note("%d wallets, %d ledger entries.", verified.Wallets, verified.Entries)
			if err == nil && len(views) > 0 {
				return &problemsError{len(views)}
			}
			return err
		}),
	}
}
