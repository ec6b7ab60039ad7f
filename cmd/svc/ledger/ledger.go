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
	return a.Command(&cobra.Command{
		Use:   "verify",
		Short: "Recompute every wallet from the ledger and report what differs",
		Long: `Recompute every wallet from the ledger and report what differs:

  balance + pending without a capture + captures - refunds - adjustments = grants

The command reads both tables, changes nothing, and may run while the service runs.
Exit code 1 means that the command has found a difference.`,
	}, nil, run)
}

func run(ctx context.Context, s *app.Stack) error {
	step := s.Progress("reading", 0)
	verified, err := s.Credits.Verify(ctx, func(int) { step() })
	if s.Hidden != nil {
		fmt.Fprintln(s.Errs)
	}
	if err != nil {
		return err
	}
	views, rows := app.List(verified.Findings, func(f credit.Finding) (damageView, []string) {
		return damageView{f.Project, f.Damage, f.Key, f.Detail}, []string{f.Project, string(f.Damage), string(f.Key), f.Detail}
	})
	t := app.Table{Header: []string{"PROJECT", "DAMAGE", "ID", "DETAIL"}, Rows: rows, Empty: "Every wallet agrees with its ledger."}
	err = s.Print(struct {
		Wallets  int          `json:"wallets"`
		Entries  int          `json:"entries"`
		Findings []damageView `json:"findings"`
	}{verified.Wallets, verified.Entries, views}, t)
	s.Note("%d wallets, %d ledger entries.", verified.Wallets, verified.Entries)
	if err != nil {
		return err
	}
	return app.Problems(len(views))
}
