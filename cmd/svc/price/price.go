// Package price holds the command "svc price".
package price

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"svcapi/cmd/svc/app"
	"svcapi/shared/credit"
)

// Command returns "svc price".
func Command(a *app.App) *cobra.Command {
	return app.Group("price", "Show what operations cost", list(a))
}

type view struct {
	Operation string `json:"operation"`
	Credits   int64  `json:"credits"`
	USD       string `json:"usd"`
	Parameter string `json:"parameter"`
}

var errNoPrices = errors.New("the stack has no prices")

func list(a *app.App) *cobra.Command {
	return a.Command(&cobra.Command{
		Use:   "list",
		Short: "List the prices of Managed operations; Manual operations, balance and currency are free",
	}, nil, func(ctx context.Context, s *app.Stack) error { return runList(ctx, a, s) })
}

func runList(ctx context.Context, a *app.App, s *app.Stack) error {
	d, err := s.Deployed(ctx)
	if err != nil {
		return err
	}
	views := []view{}
	t := app.Table{Header: []string{"OPERATION", "CREDITS", "USD", "PARAMETER"}}
	for _, p := range credit.PriceList() {
		price, known := d.Prices[p.Operation]
		if !known {
			continue
		}
		v := view{p.Operation, price, Dollars(price), p.Parameter}
		views = append(views, v)
		t.Rows = append(t.Rows, []string{v.Operation, credit.Grouped(price), v.USD, v.Parameter})
	}
	if len(views) == 0 {
		return errNoPrices
	}
	return a.Print(views, t)
}

// Dollars formats credits as US dollars with at least two decimals: 10000 is 0.01.
func Dollars(credits int64) string {
	fraction := fmt.Sprintf("%06d", credits%1_000_000)
	return fmt.Sprintf("%d.%s%s", credits/1_000_000, fraction[:2], strings.TrimRight(fraction[2:], "0"))
}
