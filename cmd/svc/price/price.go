// Package price holds the command "svc price".
package price

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"svcapi/cmd/svc/app"
	"svcapi/shared/credit"
)

// Command returns "svc price".
func Command(a *app.App) *cobra.Command {
	return app.Group("price", "Show what operations cost", a.Command(&cobra.Command{
		Use: "list", Short: "List the prices of Managed operations; Manual operations, balance and currency are free",
	}, nil, list))
}

type view struct {
	Operation string `json:"operation"`
	Credits   int64  `json:"credits"`
	USD       string `json:"usd"`
	Parameter string `json:"parameter"`
}

var errNoPrices = errors.New("the stack has no prices")

func list(ctx context.Context, s *app.Stack) error {
	d, err := s.Deployed(ctx)
	if err != nil {
		return err
	}
	views := []view{}
	t := app.Table{Header: []string{"OPERATION", "CREDITS", "USD", "PARAMETER"}}
	for _, p := range credit.PriceList() {
		price, known := d.Prices[p.Name]
		if !known {
			continue
		}
		v := view{p.Name, price, app.Dollars(price), p.Parameter}
		views = append(views, v)
		t.Rows = append(t.Rows, []string{v.Operation, s.Number(price), v.USD, v.Parameter})
	}
	if len(views) == 0 {
		return errNoPrices
	}
	return s.Print(views, t)
}
