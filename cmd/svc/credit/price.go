package credit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"svcapi/cmd/svc/app"
	"svcapi/shared/books"
	"svcapi/shared/project"
	"svcapi/shared/wallet"
)

// PriceCommand returns "svc price".
func PriceCommand(a *app.App) *cobra.Command {
	return app.Group("price", "Show what operations cost, and set the own prices of a project",
		listPrices(a), setPrice(a), unsetPrice(a))
}

// PriceView is a price in the format for programs.
type PriceView struct {
	Operation string `json:"operation"`
	Credits   int64  `json:"credits"`
	USD       string `json:"usd"`
	Parameter string `json:"parameter"` // of the stack, which has the price; empty: the project's own
	Listed    int64  `json:"listed"`    // of the stack
}

func listPrices(a *app.App) *cobra.Command {
	var id string
	return a.Command(&cobra.Command{
		Use:   "list [PROJECT]",
		Short: "List the prices of Managed operations, or those of a project; all else is free",
		Example: `  svc price list
  svc price list acme`,
	}, app.Bind(&id), func(ctx context.Context, s *app.Stack) error {
		rec := &project.Record{}
		list, err := listed(ctx, s)
		if err == nil && id != "" {
			rec, err = s.Load(ctx, id)
		}
		if err != nil {
			return err
		}
		return printPrices(s, list, &rec.Project)
	})
}

// listed returns the price list of the stack.
func listed(ctx context.Context, s *app.Stack) (wallet.Prices, error) {
	d, err := s.Deployed(ctx)
	if err == nil && len(d.Prices) == 0 {
		err = errors.New("the stack has no prices")
	}
	return d.Prices, err
}

func printPrices(s *app.Stack, list wallet.Prices, p *project.Project) error {
	var known []PriceView
	for _, row := range wallet.PriceList() {
		price, ok := list[row.Name]
		if !ok {
			continue
		}
		if _, own := p.Prices[row.Name]; own {
			row.Parameter = ""
		}
		credits := p.Price(row.Name, price)
		known = append(known, PriceView{row.Name, credits, app.Dollars(credits), row.Parameter, price})
	}
	t := app.Table{Header: []string{"OPERATION", "CREDITS", "USD", "PARAMETER", "LISTED"}}
	return app.PrintList(s.App, t, known, func(v PriceView) (PriceView, []string) {
		return v, []string{v.Operation, s.Number(v.Credits), v.USD, cmp.Or(v.Parameter, "own"), s.Number(v.Listed)}
	})
}

func setPrice(a *app.App) *cobra.Command {
	var name string
	var credits int64
	return a.ProjectCommand(&cobra.Command{
		Use:   "set PROJECT NAME CREDITS",
		Short: "Give a project its own price of an operation, in place of the listed one",
		Long: `Give a project its own price of an operation, in place of the listed one. NAME is an
operation of "svc price list"; the price of sms is for each unit. Functions follow within
seconds. The ledger and the statement show who changed which price, from what to what.`,
		Example: `  svc price set acme sms 8000
  svc price set acme pdf 0`,
	}, func(args []string) (err error) {
		name = args[0]
		if err = validateName(name); err == nil {
			credits, err = app.Integer("CREDITS", args[1], 0, wallet.MaxPrice)
		}
		return err
	}, func(ctx context.Context, s *app.Stack, rec *project.Record) error {
		return reprice(ctx, s, rec, name, &credits)
	})
}

func unsetPrice(a *app.App) *cobra.Command {
	var name string
	return a.ProjectCommand(&cobra.Command{
		Use:     "unset PROJECT NAME",
		Short:   "Return a project to the listed price of an operation",
		Example: `  svc price unset acme sms`,
	}, func(args []string) error {
		name = args[0]
		return validateName(name)
	}, func(ctx context.Context, s *app.Stack, rec *project.Record) error {
		return reprice(ctx, s, rec, name, nil)
	})
}

func validateName(name string) error {
	var known []string
	for _, p := range wallet.PriceList() {
		if known = append(known, p.Name); p.Name == name {
			return nil
		}
	}
	return app.Usagef("no price %q; the prices are %s", name, strings.Join(known, ", "))
}

// reprice gives a project its own price, or with nil the listed one, and records the change in the ledger.
func reprice(ctx context.Context, s *app.Stack, rec *project.Record, name string, credits *int64) error {
	list, err := listed(ctx, s)
	if err != nil {
		return err
	}
	actor, err := s.Actor(ctx)
	if err != nil {
		return err
	}
	text := func(p *project.Project) string {
		if own, ok := p.Prices[name]; ok {
			return wallet.Grouped(own)
		}
		return wallet.Grouped(list[name]) + " (listed)"
	}
	m := books.Movement{Project: rec.ID, ID: wallet.NewKey(time.Now(), uuid.NewString()), Price: name, Actor: actor}
	err = s.Projects.Reprice(ctx, rec.ID, func(p *project.Project) (*types.Put, error) {
		before, prices := text(p), map[string]int64{}
		maps.Copy(prices, p.Prices)
		if delete(prices, name); credits != nil {
			prices[name] = *credits
		}
		p.Prices, rec.Prices = prices, prices
		if m.Reason = fmt.Sprintf("from %s to %s", before, text(p)); before == text(p) {
			return nil, nil
		}
		return s.Credits.PriceChange(m), nil
	})
	if err != nil {
		return err
	}
	return printPrices(s, list, &rec.Project)
}
