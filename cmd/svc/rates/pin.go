package rates

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"svcapi/cmd/svc/app"
	"svcapi/shared/rates"
	"svcapi/shared/rates/sources"
)

type pinOptions struct {
	source, reason string
	off            bool
}

func pin(a *app.App) *cobra.Command {
	o := &pinOptions{}
	cmd := a.Command(&cobra.Command{
		Use:   "pin [SOURCE]",
		Short: "Use one source alone, or with --off all sources in their order",
		Long: `Use one source alone, and fetch from it at once. The rates in use stay until the
source returns valid rates. --off uses all sources in their order again.`,
		Example: `  svc rates pin frankfurter --reason "openexchangerates reports a wrong LKR"
  svc rates pin --off --reason "corrected by the source"`,
	}, o.parse, o.run)
	cmd.Flags().BoolVar(&o.off, "off", false, "use all sources in their order again")
	cmd.Flags().StringVar(&o.reason, "reason", "", "reason for the history")
	return cmd
}

func (o *pinOptions) parse(args []string) error {
	if o.off != (len(args) == 0) {
		return app.Usagef("give either a source or --off")
	}
	if o.reason == "" {
		return app.Usagef("give a --reason for the history")
	}
	if o.off {
		return nil
	}
	if o.source = args[0]; sources.Find(o.source) == nil {
		return app.Usagef("no source %q; the sources are %s", o.source, strings.Join(sources.Names(), ", "))
	}
	return nil
}

func (o *pinOptions) run(ctx context.Context, s *app.Stack) error {
	if o.off {
		stored, err := s.Rates.Stored(ctx)
		if err != nil {
			return err
		}
		if stored.Pin == nil {
			s.Note("No source is pinned: nothing was changed.")
			return nil
		}
	}
	if err := o.put(ctx, s); err != nil {
		return err
	}
	report, err := fetch(ctx, s, false)
	if err != nil {
		s.Note("The choice is stored; the rates in use stay until the source returns valid rates.")
		return err
	}
	return printReport(s, report)
}

// put stores the choice and its event in the history.
func (o *pinOptions) put(ctx context.Context, s *app.Stack) error {
	actor, err := s.Actor(ctx)
	if err != nil {
		return err
	}
	event := rates.Event{At: time.Now(), Outcome: "unpinned", Detail: o.reason, Actor: actor}
	var pin *rates.Pin
	if !o.off {
		event.Outcome, event.Source = "pinned", o.source
		pin = &rates.Pin{Source: o.source, Reason: o.reason, Actor: actor, At: event.At}
	}
	if err := s.Rates.PutPin(ctx, pin); err != nil {
		return err
	}
	return s.Rates.PutEvent(ctx, event, 0)
}
