// Package credit holds the command "svc credit".
package credit

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"svcapi/cmd/svc/app"
)

// Command returns "svc credit".
func Command(a *app.App) *cobra.Command {
	return app.Group("credit", "Grant credits, show balances and the ledger (1 USD is 1,000,000 credits)",
		grant(a), grants(a), refund(a), adjust(a), alert(a), balance(a), ledger(a))
}

type balanceOptions struct {
	*app.App
	projectID string
}

func balance(a *app.App) *cobra.Command {
	o := &balanceOptions{App: a}
	return a.Command(&cobra.Command{Use: "balance PROJECT", Short: "Show the balance of a project"}, app.Bind(&o.projectID), o.run)
}

func (o *balanceOptions) run(ctx context.Context, s *app.Stack) error {
	if _, err := s.Load(ctx, o.projectID); err != nil {
		return err
	}
	balance, err := s.Credits.Balance(ctx, o.projectID)
	if err != nil {
		return err
	}
	return o.Print(struct {
		ProjectID string `json:"project_id"`
		Balance   int64  `json:"balance"`
	}{o.projectID, balance}, app.Table{Rows: [][]string{{"Project", o.projectID}, {"Balance", app.Grouped(balance) + " credits"}}})
}

type alertOptions struct {
	*app.App
	projectID string
	credits   int64
}

func alert(a *app.App) *cobra.Command {
	o := &alertOptions{App: a}
	return a.Command(&cobra.Command{
		Use:   "alert PROJECT CREDITS",
		Short: "Set the balance below which the stack's low-wallet alarm rings; 0 removes the alert",
	}, o.parse, o.run)
}

func (o *alertOptions) parse(args []string) (err error) {
	o.projectID = args[0]
	if o.credits, err = strconv.ParseInt(args[1], 10, 64); err != nil || o.credits < 0 {
		return app.Usagef("CREDITS is a whole number, 0 or more, not %q", args[1])
	}
	return nil
}

func (o *alertOptions) run(ctx context.Context, s *app.Stack) error {
	if _, err := s.Load(ctx, o.projectID); err != nil {
		return err
	}
	if err := s.Credits.SetAlert(ctx, o.projectID, o.credits); err != nil {
		return err
	}
	text := "none"
	if o.credits > 0 {
		text = "below " + app.Grouped(o.credits) + " credits"
	}
	return o.Print(struct {
		ProjectID string `json:"project_id"`
		Alert     int64  `json:"alert"`
	}{o.projectID, o.credits}, app.Table{Rows: [][]string{{"Project", o.projectID}, {"Alert", text}}})
}
