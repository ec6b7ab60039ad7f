package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/uuid"
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

// entryNote formats the reason and the actor of an entry.
func entryNote(e books.Entry) string {
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

func listLedger(a *app.App) *cobra.Command {
	var days app.Days
	cmd := a.ProjectCommand("ledger PROJECT", days.Parse,
		func(ctx context.Context, s *app.Stack, rec *project.Record) error {
			entries, err := s.Credits.Entries(ctx, rec.ID, days.First, days.Last)
			if err != nil {
				return err
			}
			entries = slices.DeleteFunc(entries, func(e books.Entry) bool { return e.State == wallet.Released && e.Price == "" })
			for i := range entries {
				entries[i].Credits = effect(entries[i])
			}
			const header = "ID, TIME, STATE, CREDITS, USD, OPERATION, ENVIRONMENT, VENDOR, VENDOR ID, REQUEST, NOTE, REFERENCE"
			return app.PrintList(s.App, header, "No entries.", entries, func(e books.Entry) []string {
				credits, dollars := s.Number(e.Credits), app.Dollars(e.Credits)
				if e.Credits > 0 && !s.CSV() {
					credits, dollars = "+"+credits, "+"+dollars
				}
				return []string{string(e.Key), s.Time(e.At), string(e.State), credits, dollars, e.Price, e.Environment, e.Vendor,
					e.VendorID, e.RequestID, entryNote(e), e.Reference}
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
	return cmd
}

// verifyLedger compares every wallet with the ledger.
func verifyLedger(ctx context.Context, s *app.Stack) error {
	step := s.Progress("reading", 0)
	verified, err := s.Credits.Verify(ctx, step)
	if err != nil {
		return err
	}
	views := append([]books.Finding{}, verified.Findings...)
	t := app.TableOf("PROJECT, DAMAGE, ID, DETAIL", "Every wallet agrees with its ledger.", views,
		func(f books.Finding) []string { return []string{f.Project, string(f.Damage), string(f.Key), f.Detail} })
	err = s.Print(map[string]any{"wallets": verified.Wallets, "entries": verified.Entries, "findings": views}, t)
	s.Note("%s, %s.", app.Count(verified.Wallets, "wallet", "wallets"),
		app.Count(verified.Entries, "ledger entry", "ledger entries"))
	if err != nil {
		return err
	}
	return app.Problems(len(views))
}

// priceView is a price in the format for programs.
type priceView struct {
	Operation string `json:"operation"`
	Credits   int64  `json:"credits"`
	USD       string `json:"usd"`
	Parameter string `json:"parameter"` // of the stack, which has the price; empty: the project's own
	Listed    int64  `json:"listed"`    // of the stack
}

func listPrices(a *app.App) *cobra.Command {
	var id string
	return a.Command("list [PROJECT]", app.Bind(&id), func(ctx context.Context, s *app.Stack) error {
		rec := &project.Record{}
		list, err := listedPrices(ctx, s)
		if err == nil && id != "" {
			rec, err = s.Load(ctx, id)
		}
		if err != nil {
			return err
		}
		return printPrices(s, list, &rec.Project)
	})
}

// listedPrices returns the price list of the stack.
func listedPrices(ctx context.Context, s *app.Stack) (wallet.Prices, error) {
	_, prices, err := s.Deployed(ctx)
	if err == nil && len(prices) == 0 {
		err = errors.New("the stack has no prices")
	}
	return prices, err
}

func printPrices(s *app.Stack, list wallet.Prices, p *project.Project) error {
	var known []priceView
	for _, row := range wallet.PriceList() {
		price, ok := list[row.Name]
		if !ok {
			continue
		}
		if _, own := p.Prices[row.Name]; own {
			row.Parameter = ""
		}
		credits := p.Price(row.Name, price)
		known = append(known, priceView{row.Name, credits, app.Dollars(credits), row.Parameter, price})
	}
	return app.PrintList(s.App, "OPERATION, CREDITS, USD, PARAMETER, LISTED", "", known, func(v priceView) []string {
		return []string{v.Operation, s.Number(v.Credits), v.USD, cmp.Or(v.Parameter, "own"), s.Number(v.Listed)}
	})
}

// ownPrice returns a command that gives a project its own price of an operation, or without CREDITS the listed one.
func ownPrice(a *app.App, use string) *cobra.Command {
	var name string
	var credits *int64
	return a.ProjectCommand(use, func(args []string) (err error) {
		var known []string
		for _, p := range wallet.PriceList() {
			known = append(known, p.Name)
		}
		if name = args[0]; !slices.Contains(known, name) {
			return app.Usagef("no price %q; the prices are %s", name, strings.Join(known, ", "))
		}
		if len(args) > 1 {
			credits = new(int64)
			*credits, err = app.Integer("CREDITS", args[1], 0, wallet.MaxPrice)
		}
		return err
	}, func(ctx context.Context, s *app.Stack, rec *project.Record) error {
		return reprice(ctx, s, rec, name, credits)
	})
}

// reprice gives a project its own price, or with nil the listed one, and records the change in the ledger.
func reprice(ctx context.Context, s *app.Stack, rec *project.Record, name string, credits *int64) error {
	list, err := listedPrices(ctx, s)
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
	m := wallet.Entry{Project: rec.ID, Key: wallet.NewKey(time.Now(), uuid.NewString()), Price: name, Actor: actor}
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
