// Package ledger holds the command "svc ledger".
package ledger

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"svcapi/cmd/svc/app"
	"svcapi/shared/credit"
)

// Command returns "svc ledger".
func Command(a *app.App) *cobra.Command {
	return app.Group("ledger", "Audit the wallets against the ledger", verify(a))
}

type damageView struct {
	ProjectID string        `json:"project_id"`
	Damage    credit.Damage `json:"damage"`
	ID        credit.Key    `json:"id"`
	Detail    string        `json:"detail"`
}

func verify(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:   "verify",
		Short: "Recompute every wallet from the ledger and report what differs",
		Long: `Recompute every wallet from the ledger and report what differs:

  balance + pending without a capture + captures - refunds - adjustments = grants

It reads both tables whole, changes nothing, and may run while the service does.
Exit code 1: something was found.`,
		Args: cobra.NoArgs,
		RunE: a.On(app.Bind(), func(ctx context.Context, s *app.Stack) error { return runVerify(ctx, a, s) }),
	}
}

func runVerify(ctx context.Context, a *app.App, s *app.Stack) error {
	step := a.Progress("reading", 0)
	verified, err := s.Credits.Verify(ctx, func(int) { step() })
	if a.Hidden != nil {
		fmt.Fprintln(a.Errs)
	}
	if err != nil {
		return err
	}
	views := []damageView{}
	t := app.Table{Header: []string{"PROJECT", "DAMAGE", "ID", "DETAIL"}, Empty: "Every wallet is what its ledger says."}
	for _, f := range verified.Findings {
		v := damageView{f.Project, f.Damage, f.Key, f.Detail}
		views = append(views, v)
		t.Rows = append(t.Rows, []string{v.ProjectID, string(v.Damage), string(v.ID), v.Detail})
	}
	err = a.Print(struct {
		Wallets  int          `json:"wallets"`
		Entries  int          `json:"entries"`
		Findings []damageView `json:"findings"`
	}{verified.Wallets, verified.Entries, views}, t)
	a.Note("%d wallets, %d ledger entries.", verified.Wallets, verified.Entries)
	if err == nil && len(views) > 0 {
		return app.ProblemsError(len(views))
	}
	return err
}
