package rates

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"svcapi/cmd/svc/app"
	"svcapi/shared/rates"
	"svcapi/shared/rates/vendors"
)

type pinOptions struct {
	*app.App
	source, reason string
	off            bool
}

func pin(a *app.App) *cobra.Command {
	o := &pinOptions{App: a}
	cmd := &cobra.Command{
		Use:   "pin [SOURCE]",
		Short: "Use one source alone, or with --off all in their order again",
		Long: `Use one source alone, and fetch from it at once. While it gives nothing that
can be believed, what was in use stays. --off gives all sources their turn again.`,
		Example: `  svc rates pin frankfurter --reason "openexchangerates reports a wrong LKR"
  svc rates pin --off --reason "corrected by the source"`,
		Args: cobra.MaximumNArgs(1),
		RunE: a.On(o.parse, o.run),
	}
	cmd.Flags().BoolVar(&o.off, "off", false, "all sources in their order again")
	cmd.Flags().StringVar(&o.reason, "reason", "", "why, for the history")
	return cmd
}

func (o *pinOptions) parse(args []string) error {
	if o.off != (len(args) == 0) {
		return app.Usagef("give a source, or --off")
	}
	if o.reason == "" {
		return app.Usagef("give a --reason: it stands in the history")
	}
	if o.off {
		return nil
	}
	if o.source = args[0]; vendors.Find(o.source) == nil {
		return app.Usagef("no source %q; there are %s", o.source, strings.Join(vendorNames(), ", "))
	}
	return nil
}

func (o *pinOptions) run(ctx context.Context, s *app.Stack) error {
	if o.off {
		held, err := s.Rates.Held(ctx)
		if err != nil {
			return err
		}
		if held.Pin == nil {
			o.Note("No source is pinned: nothing was changed.")
			return nil
		}
	}
	if err := o.put(ctx, s); err != nil {
		return err
	}
	report, err := fetch(ctx, s, false)
	if err != nil {
		o.Note("The choice stands; what was in use stays until the source gives rates that can be used.")
		return err
	}
	return printReport(o.App, report)
}

// put stores the choice and its entry of the history.
func (o *pinOptions) put(ctx context.Context, s *app.Stack) error {
	actor, err := s.Actor(ctx)
	if err != nil {
		return err
	}
	event := rates.Event{At: time.Now(), What: "unpinned", Detail: o.reason, Actor: actor}
	var pin *rates.Pin
	if !o.off {
		event.What, event.Source = "pinned", o.source
		pin = &rates.Pin{Source: o.source, Reason: o.reason, Actor: actor, At: event.At}
	}
	if err := s.Rates.PutPin(ctx, pin); err != nil {
		return err
	}
	return s.Rates.PutEvent(ctx, event, 0)
}
