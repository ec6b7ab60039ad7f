package credit

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"svcapi/cmd/svc/app"
	"svcapi/shared/credit"
	"svcapi/shared/project"
)

// EntryView is a ledger entry as programs read it.
type EntryView struct {
	ID          credit.Key   `json:"id"`
	State       credit.State `json:"state"`
	Credits     int64        `json:"credits"`
	Operation   string       `json:"operation"`
	Environment string       `json:"environment"`
	Vendor      string       `json:"vendor"`
	RequestID   string       `json:"request_id"`
	At          time.Time    `json:"at"`
	Uncertain   bool         `json:"uncertain"`
	Actor       string       `json:"actor"`
	Reason      string       `json:"reason"`
	// Refunds is the ID of the refunded charge.
	Refunds credit.Key `json:"refunds"`
	// Resolution is set for a charge that was uncertain.
	Resolution *ResolutionView `json:"resolution"`
}

// ResolutionView is an operator's decision about an uncertain charge.
type ResolutionView struct {
	Verdict credit.Verdict `json:"verdict"`
	Reason  string         `json:"reason"`
	Actor   string         `json:"actor"`
	At      time.Time      `json:"at"`
}

func viewEntry(e credit.Entry) EntryView {
	v := EntryView{e.Key, e.State, e.Credits, e.Price, e.Environment, e.Vendor, e.RequestID, e.At.UTC(), e.Uncertain, e.Actor, e.Reason, e.Refunds, nil}
	if e.Resolution.Verdict != "" {
		r := ResolutionView(e.Resolution)
		v.Resolution = &r
	}
	return v
}

// effect returns the change of the balance by the entry.
func (e EntryView) effect() int64 {
	switch e.State {
	case credit.Captured, credit.Sending:
		return -e.Credits
	case credit.Released:
		return 0
	}
	return e.Credits
}

// maxDays bounds the days of a ledger, because each day is a query.
const maxDays = 366

// note formats the reason and the actor of the entry.
func (e EntryView) note() string {
	text, actor := e.Reason, e.Actor
	switch {
	case e.Uncertain:
		text = "uncertain"
	case e.Resolution != nil:
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

type ledgerOptions struct {
	date      string
	last      time.Time
	days      int
	uncertain bool
}

func ledger(a *app.App) *cobra.Command {
	o := &ledgerOptions{}
	cmd := a.ProjectCommand(&cobra.Command{
		Use:   "ledger PROJECT",
		Short: "Show the ledger entries of a project",
		Example: `  svc credit ledger acme
  svc credit ledger acme --day 2026-03-31 --days 31 --output csv
  svc credit ledger acme --uncertain`,
	}, o.parse, o.run)
	flags := cmd.Flags()
	flags.StringVar(&o.date, "day", "", "UTC date (default: today)")
	flags.IntVar(&o.days, "days", 1, "number of days, the last one included")
	flags.BoolVar(&o.uncertain, "uncertain", false, "show the uncertain charges of all days: a vendor may have carried out the request")
	return cmd
}

func (o *ledgerOptions) parse([]string) (err error) {
	o.last = time.Now().UTC()
	if o.date != "" {
		if o.last, err = time.Parse(time.DateOnly, o.date); err != nil {
			return app.Usagef("--day is a UTC date such as 2026-03-31, not %q", o.date)
		}
	}
	if o.days < 1 || o.days > maxDays {
		return app.Usagef("--days is 1 to %d", maxDays)
	}
	return nil
}

func (o *ledgerOptions) run(ctx context.Context, s *app.Stack, rec *project.Record) error {
	entries, err := o.entries(ctx, s, rec.ID)
	if err != nil {
		return err
	}
	views, rows := app.List(entries, func(e credit.Entry) (EntryView, []string) {
		v := viewEntry(e)
		credits, dollars := s.Number(v.effect()), app.Dollars(v.effect())
		if v.effect() > 0 && !s.CSV() {
			credits, dollars = "+"+credits, "+"+dollars
		}
		return v, []string{string(v.ID), s.Time(v.At), string(v.State), credits, dollars, v.Operation, v.Environment, v.Vendor, v.RequestID, v.note()}
	})
	header := []string{"ID", "TIME", "STATE", "CREDITS", "USD", "OPERATION", "ENVIRONMENT", "VENDOR", "REQUEST", "NOTE"}
	return s.Print(views, app.Table{Header: header, Rows: rows, Empty: "No entries."})
}

// entries reads the entries of the days, the oldest first, or the uncertain charges.
func (o *ledgerOptions) entries(ctx context.Context, s *app.Stack, projectID string) ([]credit.Entry, error) {
	if o.uncertain {
		return s.Credits.Uncertain(ctx, projectID)
	}
	var all []credit.Entry
	for back := o.days - 1; back >= 0; back-- {
		entries, err := s.Credits.Entries(ctx, projectID, o.last.AddDate(0, 0, -back).Format(time.DateOnly))
		if err != nil {
			return nil, err
		}
		all = append(all, entries...)
	}
	return all, nil
}
