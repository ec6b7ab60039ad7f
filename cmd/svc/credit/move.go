package credit

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"svcapi/cmd/svc/app"
	"svcapi/shared/credit"
	"svcapi/shared/project"
)

// Moved is the result of a movement, with the new balance.
type Moved struct {
	ProjectID string     `json:"project_id"`
	ID        credit.Key `json:"id"`
	Credits   int64      `json:"credits"`
	Actor     string     `json:"actor"`
	Balance   int64      `json:"balance"`
}

func (m Moved) show(ctx context.Context, s *app.Stack, name string) error {
	var err error
	if m.Balance, err = s.Credits.Balance(ctx, m.ProjectID); err != nil {
		return err
	}
	return s.Print(m, app.Table{Rows: app.Rows("Project", m.ProjectID, name, string(m.ID), "Credits", app.Credits(m.Credits), "By", m.Actor, "Balance", app.Credits(m.Balance))})
}

var errNoReason = app.Usagef("give a --reason for the ledger")

// moveOptions describe an operator's movement. The movement is new, or a repeat with --id.
type moveOptions struct {
	name, article string // adjustment, an
	movement      credit.Movement
	id            string
}

func (o *moveOptions) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.id, "id", "", "repeat the "+o.name+" of this ID")
	cmd.Flags().StringVar(&o.movement.Reason, "reason", "", "reason for the ledger")
}

// identify validates the reason and sets the movement's ID: a new ID, or the value of --id.
func (o *moveOptions) identify() (err error) {
	m := &o.movement
	if m.Reason == "" {
		return errNoReason
	}
	m.RequestID = uuid.NewString()
	if o.id == "" {
		m.ID = credit.NewKey(time.Now(), m.RequestID)
		return nil
	}
	if m.ID, err = credit.ParseKey(o.id); err != nil {
		return app.Usagef("--id is the ID of %s %s that this command printed, not %q", o.article, o.name, o.id)
	}
	return validateDay("--id", m.ID.Time())
}

// move writes and prints the movement. After a failure that may hide a success, move prints the command's --id.
func (o *moveOptions) move(ctx context.Context, s *app.Stack, rec *project.Record, write func(context.Context, credit.Movement) error) (err error) {
	m := o.movement
	m.Project = rec.ID
	if m.Actor, err = s.Actor(ctx); err != nil {
		return err
	}
	if err := write(ctx, m); err != nil {
		if !app.CertainlyRefused(err) {
			s.Note("The %s may have taken effect. Repeat the command with --id %s: the repeat counts once.", o.name, m.ID)
		}
		return err
	}
	return Moved{m.Project, m.ID, m.Credits, m.Actor, 0}.show(ctx, s, strings.ToUpper(o.name[:1])+o.name[1:])
}

func grant(a *app.App) *cobra.Command {
	o := &moveOptions{name: "grant", article: "a"}
	cmd := a.ProjectCommand(&cobra.Command{
		Use:   "grant PROJECT CREDITS",
		Short: "Add credits to a project's wallet",
		Long: `Add credits to a project's wallet. A grant has an ID and takes effect once: if
the result is lost, repeat the command with the --id that was printed.`,
		Example: `  svc credit grant acme 10000000 --reason "invoice 2031"`,
	}, o.parseGrant, o.grant)
	o.addFlags(cmd)
	return cmd
}

func (o *moveOptions) parseGrant(args []string) (err error) {
	if strings.HasPrefix(args[0], "-") {
		return app.Usagef(`a grant cannot be negative: "svc credit adjust PROJECT --by %s" removes credits`, args[0])
	}
	if o.movement.Credits, err = app.Integer("CREDITS", args[0], 1, credit.MaxBalance); err != nil {
		return err
	}
	return o.identify()
}

func (o *moveOptions) grant(ctx context.Context, s *app.Stack, rec *project.Record) error {
	if err := s.Credits.CreateWallet(ctx, rec.ID); err != nil {
		return err
	}
	return o.move(ctx, s, rec, s.Credits.Grant)
}

type adjustOptions struct {
	moveOptions
	by string
}

func adjust(a *app.App) *cobra.Command {
	o := &adjustOptions{moveOptions: moveOptions{name: "adjustment", article: "an"}}
	cmd := a.ProjectCommand(&cobra.Command{
		Use:   "adjust PROJECT --by CREDITS",
		Short: "Correct a balance in either direction",
		Long: `Correct a balance in either direction. An adjustment has an ID and takes effect
once: if the result is lost, repeat the command with the --id that was printed.`,
		Example: `  svc credit adjust acme --by 5000 --reason "ticket 812"
  svc credit adjust acme --by -5000 --reason "booked twice"`,
	}, o.parse, o.run)
	cmd.Flags().StringVar(&o.by, "by", "0", "`credits` to add; a negative number removes credits")
	o.addFlags(cmd)
	return cmd
}

func (o *adjustOptions) parse([]string) (err error) {
	if o.movement.Credits, err = app.Integer("--by", o.by, -credit.MaxBalance, credit.MaxBalance); err != nil {
		return err
	}
	if o.movement.Credits == 0 {
		return app.Usagef("--by is a whole number other than 0")
	}
	return o.identify()
}

func (o *adjustOptions) run(ctx context.Context, s *app.Stack, rec *project.Record) error {
	if s.DryRun && o.id == "" { // the store validates the balance only as it writes
		balance, err := s.Credits.Balance(ctx, rec.ID)
		if err != nil {
			return err
		}
		if balance+o.movement.Credits < 0 {
			return fmt.Errorf("%w: %s credits of %s", credit.ErrOutOfRange, credit.Grouped(o.movement.Credits), credit.Grouped(balance))
		}
	}
	return o.move(ctx, s, rec, s.Credits.Adjust)
}

type refundOptions struct {
	reason string
	charge credit.Key
}

func refund(a *app.App) *cobra.Command {
	o := &refundOptions{}
	cmd := a.ProjectCommand(&cobra.Command{
		Use:   "refund PROJECT CHARGE",
		Short: "Refund all credits of a charge, once",
		Long: `Refund all credits of a charge. Repeating the command has no effect. CHARGE is
the ID of the charge in "svc credit ledger". To refund an uncertain SMS, use
"svc sms uncertain resolve".`,
		Example: `  svc credit refund acme 1767225600000000-abcdefgh --reason "ticket 812"`,
	}, o.parse, o.run)
	cmd.Flags().StringVar(&o.reason, "reason", "", "reason for the ledger")
	return cmd
}

func (o *refundOptions) parse(args []string) (err error) {
	if o.charge, err = credit.ParseKey(args[0]); err != nil {
		return app.Usagef(`CHARGE is an ID of "svc credit ledger", not %q`, args[0])
	}
	if o.reason == "" {
		return errNoReason
	}
	return nil
}

func (o *refundOptions) run(ctx context.Context, s *app.Stack, rec *project.Record) error {
	actor, err := s.Actor(ctx)
	if err != nil {
		return err
	}
	entry, err := s.Credits.RefundCharge(ctx, rec.ID, o.charge, o.reason, actor)
	if err != nil {
		return err
	}
	return Moved{rec.ID, o.charge, entry.Credits, actor, 0}.show(ctx, s, "Refund of")
}

// firstDay is before the first entry of every ledger.
var firstDay = time.Date(2020, time.January, 1, 0, 0, 0, 0, time.UTC)

// validateDay refuses days that no ledger entry can have.
func validateDay(flag string, at time.Time) error {
	today := time.Now().UTC().Truncate(24 * time.Hour)
	if at.Before(firstDay) || !at.Before(today.AddDate(0, 0, 1)) {
		return app.Usagef("%s is of %s; it can be of %s to today, %s (UTC)", flag, at.UTC().Format(time.DateOnly), firstDay.Format(time.DateOnly), today.Format(time.DateOnly))
	}
	return nil
}
