// Package credit holds the command "svc credit".
package credit

import (
	"cmp"
	"context"
	"errors"
	"regexp"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"svcapi/cmd/svc/app"
	"svcapi/shared/books"
	"svcapi/shared/project"
	"svcapi/shared/project/admin"
	"svcapi/shared/wallet"
)

// Command returns "svc credit".
func Command(a *app.App) *cobra.Command {
	return app.Group("credit", "Grant credits, show balances and the ledger (1 USD is 1,000,000 credits)",
		grant(a), refund(a), adjust(a), alert(a),
		a.ProjectCommand(&cobra.Command{Use: "balance PROJECT", Short: "Show the balance of a project"}, nil, balance),
		ledger(a))
}

func balance(ctx context.Context, s *app.Stack, rec *project.Record) error {
	balance, err := s.Credits.Balance(ctx, rec.ID)
	if err != nil {
		return err
	}
	return s.PrintRows(map[string]any{"project_id": rec.ID, "balance": balance}, "Project", rec.ID,
		"Balance", app.Credits(balance))
}

func alert(a *app.App) *cobra.Command {
	var credits int64
	return a.ProjectCommand(&cobra.Command{
		Use:   "alert PROJECT CREDITS",
		Short: "Set the balance below which the stack's low-wallet alarm fires; 0 removes the alert",
	}, func(args []string) (err error) {
		credits, err = app.Integer("CREDITS", args[0], 0, wallet.MaxBalance)
		return err
	}, func(ctx context.Context, s *app.Stack, rec *project.Record) error {
		if err := admin.RefuseClosed(&rec.Project); err != nil {
			return err
		}
		if err := s.Credits.SetAlert(ctx, rec.ID, credits); err != nil {
			return err
		}
		text := "none"
		if credits > 0 {
			text = "below " + app.Credits(credits)
		}
		return s.PrintRows(map[string]any{"project_id": rec.ID, "alert": credits}, "Project", rec.ID, "Alert", text)
	})
}

// Moved is the result of a movement, with the new balance.
type Moved struct {
	ProjectID string     `json:"project_id"`
	ID        wallet.Key `json:"id"`
	Credits   int64      `json:"credits"`
	Actor     string     `json:"actor"`
	Balance   int64      `json:"balance"`
}

func (m Moved) show(ctx context.Context, s *app.Stack, name string) (err error) {
	if m.Balance, err = s.Credits.Balance(ctx, m.ProjectID); err != nil {
		return err
	}
	return s.PrintRows(m, "Project", m.ProjectID, name, string(m.ID), "Credits", app.Credits(m.Credits), "By", m.Actor,
		"Balance", app.Credits(m.Balance))
}

var errNoReason = app.Usagef("give a --reason for the ledger")

// movement is an operator's movement: a new one, or a repeat with --id.
type movement struct {
	books.Movement
	name, id string
}

func (m *movement) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&m.id, "id", "", "repeat the "+m.name+" of this ID")
	cmd.Flags().StringVar(&m.Reason, "reason", "", "reason for the ledger")
}

// identify validates the reason and sets the movement's ID: a new ID, or the value of --id.
func (m *movement) identify() (err error) {
	if m.Reason == "" {
		return errNoReason
	}
	m.RequestID = uuid.NewString()
	if m.id == "" {
		m.ID = wallet.NewKey(time.Now(), m.RequestID)
		return nil
	}
	if m.ID, err = wallet.ParseKey(m.id); err != nil {
		return app.Usagef("--id is an ID that this command printed, not %q", m.id)
	}
	return app.ValidateDay("--id", m.ID.Time())
}

// move writes and prints the movement. After a failure that may hide a success, move prints the command's --id.
func (m *movement) move(ctx context.Context, s *app.Stack, rec *project.Record,
	write func(context.Context, books.Movement) error) (err error) {
	if err := admin.RefuseClosed(&rec.Project); err != nil {
		return err
	}
	m.Project = rec.ID
	if m.Actor, err = s.Actor(ctx); err != nil {
		return err
	}
	if err := write(ctx, m.Movement); err != nil {
		if !app.CertainlyRefused(err) {
			s.Note("The %s may have taken effect. Repeat the command with --id %s: the repeat counts once.", m.name, m.ID)
		}
		return err
	}
	return Moved{m.Project, m.ID, m.Credits, m.Actor, 0}.show(ctx, s, strings.ToUpper(m.name[:1])+m.name[1:])
}

// askFrom is the largest grant that the command makes without asking: 100 USD.
const askFrom = 100 * perDollar

// perDollar is the number of credits of 1 USD.
const perDollar = 1_000_000

// dollars matches an amount in USD, such as 5usd or 2.50usd.
var dollars = regexp.MustCompile(`^(\d{1,9})(?:\.(\d{1,6}))?usd$`)

// amount reads a number of credits, or an amount in USD.
func amount(text string) (int64, error) {
	if match := dollars.FindStringSubmatch(strings.ToLower(text)); match != nil {
		text = strings.TrimLeft(match[1]+match[2]+strings.Repeat("0", 6-len(match[2])), "0")
	}
	return app.Integer("CREDITS", text, 1, wallet.MaxBalance)
}

func grant(a *app.App) *cobra.Command {
	m, file, batch, yes := &movement{name: "grant"}, "", "", false
	var given []bulkGrant
	cmd := a.Command(&cobra.Command{
		Use:   "grant [PROJECT CREDITS]",
		Short: "Add credits to a project's wallet, or with --file to many",
		Long: `Add credits to a project's wallet. A grant has an ID and takes effect once: if
the result is lost, repeat the command with the --id that was printed. CREDITS is a
number of credits, or of USD such as 5usd.

Each line of a file is PROJECT,CREDITS or PROJECT,CREDITS,REASON. The command ignores
a first line that begins with the column "project" or "project_id", and lines that
begin with #. "-" reads standard input. The command grants nothing unless every line
is valid and every project is there and not closed. A grant of a file counts once for
its batch and project, so the command may be repeated.`,
		Example: `  svc credit grant acme 10000000 --reason "invoice 2031"
  svc credit grant --file march.csv --batch 2026-03-31-invoices --reason invoice --dry-run`,
	}, func(args []string) (err error) {
		switch {
		case file != "" && (len(args) > 0 || m.id != ""), file == "" && batch != "":
			return app.Usagef("give PROJECT and CREDITS, or --file with --batch")
		case file != "":
			text, err := a.Read(file, maxFile)
			if err == nil {
				given, err = readGrants(string(text), batch, m.Reason)
			}
			return err
		case len(args) < 2:
			return app.Usagef("missing %s, or --file", strings.Join([]string{"PROJECT", "CREDITS"}[len(args):], " and "))
		}
		m.Project = args[0]
		if m.Credits, err = amount(args[1]); err != nil {
			return err
		}
		return m.identify()
	}, func(ctx context.Context, s *app.Stack) error {
		if file != "" {
			return grantAll(ctx, s, given)
		}
		rec, err := s.Load(ctx, m.Project)
		if err != nil {
			return err
		}
		if m.Credits > askFrom {
			if err := s.Confirm(ctx, yes, "Grant "+app.Credits(m.Credits)+" to "+rec.ID+"?"); err != nil {
				return err
			}
		}
		return m.move(ctx, s, rec, func(ctx context.Context, m books.Movement) error { return makeGrant(ctx, s, m) })
	})
	m.addFlags(cmd)
	cmd.Flags().BoolVar(&yes, "yes", false, "grant more than 100 USD without asking")
	cmd.Flags().StringVar(&file, "file", "", "CSV file of grants to many projects, - for standard input")
	cmd.Flags().StringVar(&batch, "batch", "", "name of the file's grants, beginning with their date: 2026-03-31-invoices")
	return cmd
}

// makeGrant makes a grant. A project without a wallet gets one, unless the ledger refuses the grant.
func makeGrant(ctx context.Context, s *app.Stack, m books.Movement) error {
	err := s.Credits.Grant(ctx, m)
	if errors.Is(err, books.ErrNoWallet) {
		if err = s.Credits.CreateWallet(ctx, m.Project); err == nil {
			err = s.Credits.Grant(ctx, m)
		}
	}
	return err
}

func adjust(a *app.App) *cobra.Command {
	m, by := &movement{name: "adjustment"}, ""
	cmd := a.ProjectCommand(&cobra.Command{
		Use:   "adjust PROJECT --by CREDITS",
		Short: "Correct a balance in either direction",
		Long: `Correct a balance in either direction. An adjustment has an ID and takes effect
once: if the result is lost, repeat the command with the --id that was printed.`,
		Example: `  svc credit adjust acme --by 5000 --reason "ticket 812"
  svc credit adjust acme --by -5000 --reason "booked twice"`,
	}, func([]string) (err error) {
		if m.Credits, err = app.Integer("--by", by, -wallet.MaxBalance, wallet.MaxBalance); err != nil {
			return err
		}
		if m.Credits == 0 {
			return app.Usagef("--by is a whole number other than 0")
		}
		return m.identify()
	}, func(ctx context.Context, s *app.Stack, rec *project.Record) error {
		if s.DryRun && m.id == "" { // the store validates the balance only as it writes
			wallet, err := s.Credits.Wallet(ctx, rec.ID)
			if err == nil {
				err = cmp.Or(wallet, &books.Wallet{}).ValidateAdjustment(m.Credits)
			}
			if err != nil {
				return err
			}
		}
		return m.move(ctx, s, rec, s.Credits.Adjust)
	})
	cmd.Flags().StringVar(&by, "by", "0", "`credits` to add; a negative number removes credits")
	m.addFlags(cmd)
	return cmd
}

func refund(a *app.App) *cobra.Command {
	var charge wallet.Key
	var reason string
	cmd := a.ProjectCommand(&cobra.Command{
		Use:   "refund PROJECT CHARGE",
		Short: "Refund all credits of a charge, once",
		Long: `Refund all credits of a charge. Repeating the command has no effect. CHARGE is
the ID of the charge in "svc credit ledger". To refund an uncertain SMS, use
"svc sms uncertain resolve".`,
		Example: `  svc credit refund acme 1767225600000000-abcdef0 --reason "ticket 812"`,
	}, func(args []string) (err error) {
		if charge, err = wallet.ParseKey(args[0]); err != nil {
			return app.Usagef(`CHARGE is an ID of "svc credit ledger", not %q`, args[0])
		}
		if reason == "" {
			return errNoReason
		}
		return nil
	}, func(ctx context.Context, s *app.Stack, rec *project.Record) error {
		if err := admin.RefuseClosed(&rec.Project); err != nil {
			return err
		}
		actor, err := s.Actor(ctx)
		if err != nil {
			return err
		}
		entry, err := s.Credits.RefundCharge(ctx, rec.ID, charge, reason, actor)
		if err != nil {
			return err
		}
		return Moved{rec.ID, charge, entry.Credits, actor, 0}.show(ctx, s, "Refund of")
	})
	cmd.Flags().StringVar(&reason, "reason", "", "reason for the ledger")
	return cmd
}
