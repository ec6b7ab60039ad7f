// Package credit holds the command "svc credit".
package credit

import (
	"context"

	"github.com/spf13/cobra"

	"svcapi/cmd/svc/app"
	"svcapi/shared/credit"
	"svcapi/shared/project"
)

// Command returns "svc credit".
func Command(a *app.App) *cobra.Command {
	return app.Group("credit", "Grant credits, show balances and the ledger (1 USD is 1,000,000 credits)",
		grant(a), grants(a), refund(a), adjust(a), alert(a),
		a.ProjectCommand(&cobra.Command{Use: "balance PROJECT", Short: "Show the balance of a project"}, nil, balance),
		ledger(a))
}

func balance(ctx context.Context, s *app.Stack, rec *project.Record) error {
	balance, err := s.Credits.Balance(ctx, rec.ID)
	if err != nil {
		return err
	}
	return s.Print(struct {
		ProjectID string `json:"project_id"`
		Balance   int64  `json:"balance"`
	}{rec.ID, balance}, app.Table{Rows: app.Rows("Project", rec.ID, "Balance", app.Credits(balance))})
}

type alertOptions struct{ credits int64 }

func alert(a *app.App) *cobra.Command {
	o := &alertOptions{}
	return a.ProjectCommand(&cobra.Command{
		Use:   "alert PROJECT CREDITS",
		Short: "Set the balance below which the stack's low-wallet alarm fires; 0 removes the alert",
	}, o.parse, o.run)
}

func (o *alertOptions) parse(args []string) (err error) {
	o.credits, err = app.Integer("CREDITS", args[0], 0, credit.MaxBalance)
	return err
}

func (o *alertOptions) run(ctx context.Context, s *app.Stack, rec *project.Record) error {
	if err := s.Credits.SetAlert(ctx, rec.ID, o.credits); err != nil {
		return err
	}
	text := "none"
	if o.credits > 0 {
		text = "below " + app.Credits(o.credits)
	}
	return s.Print(struct {
		ProjectID string `json:"project_id"`
		Alert     int64  `json:"alert"`
	}{rec.ID, o.credits}, app.Table{Rows: app.Rows("Project", rec.ID, "Alert", text)})
}
