package credit

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"svcapi/cmd/svc/app"
	"svcapi/shared/credit"
)

// LedgerCommand returns "svc ledger".
func LedgerCommand(a *app.App) *cobra.Command {
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
	}, nil, runVerify)
}

func runVerify(ctx context.Context, s *app.Stack) error {
	step := s.Progress("reading", 0)
	verified, err := s.Credits.Verify(ctx, func(int) { step() })
	if s.Hidden != nil {
		s.Note("") // ends the line of the progress
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

// PriceCommand returns "svc price".
func PriceCommand(a *app.App) *cobra.Command {
	return app.Group("price", "Show what operations cost", a.Command(&cobra.Command{
		Use: "list", Short: "List the prices of Managed operations; Manual operations, balance and currency are free",
	}, nil, prices))
}

type priceView struct {
	Operation string `json:"operation"`
	Credits   int64  `json:"credits"`
	USD       string `json:"usd"`
	Parameter string `json:"parameter"`
}

func prices(ctx context.Context, s *app.Stack) error {
	d, err := s.Deployed(ctx)
	if err != nil {
		return err
	}
	views := []priceView{}
	t := app.Table{Header: []string{"OPERATION", "CREDITS", "USD", "PARAMETER"}}
	for _, p := range credit.PriceList() {
		price, known := d.Prices[p.Operation]
		if !known {
			continue
		}
		v := priceView{p.Operation, price, app.Dollars(price), p.Parameter}
		views = append(views, v)
		t.Rows = append(t.Rows, []string{v.Operation, s.Number(price), v.USD, v.Parameter})
	}
	if len(views) == 0 {
		return errors.New("the stack has no prices")
	}
	return s.Print(views, t)
}
