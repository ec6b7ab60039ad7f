package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"svcapi/functions/sms/units"
	sms "svcapi/functions/sms/vendors"
	"svcapi/shared/credit"
	"svcapi/shared/project"
	"svcapi/shared/upstream"
)

func (a *app) sms() *cobra.Command {
	return group("sms", "Resolve SMS whose outcome is uncertain, try integrations",
		group("uncertain", "SMS whose outcome at the vendor is not known: charged until they are resolved",
			a.uncertainList(), a.uncertainResolve()),
		a.smsTest())
}

// uncertainView is an uncertain charge as programs read it.
type uncertainView struct {
	ProjectID   string     `json:"project_id"`
	ID          credit.Key `json:"id"`
	Began       time.Time  `json:"began"` // the request
	Credits     int64      `json:"credits"`
	Environment string     `json:"environment"`
	Vendor      string     `json:"vendor"`
	RequestID   string     `json:"request_id"`
}

func (a *app) uncertainList() *cobra.Command {
	return &cobra.Command{
		Use:   "list [PROJECT]",
		Short: "List the SMS whose outcome is uncertain, of one project or of all",
		Args:  cobra.MaximumNArgs(1),
		RunE: a.on(func(ctx context.Context, s *stack, args []string) error {
			ids, err := s.projectIDs(ctx, args)
			if err != nil {
				return err
			}
			views := []uncertainView{}
			t := table{header: []string{"PROJECT", "ID", "TIME", "CREDITS", "ENVIRONMENT", "VENDOR", "REQUEST"}, empty: "No SMS is uncertain."}
			for _, id := range ids {
				entries, err := s.credits.Uncertain(ctx, id)
				if err != nil {
					return err
				}
				for _, e := range entries {
					v := uncertainView{id, e.Key, e.Key.Time(), e.Credits, e.Environment, e.Vendor, e.RequestID}
					views = append(views, v)
					t.rows = append(t.rows, []string{id, string(v.ID), second(v.Began), grouped(v.Credits), v.Environment, v.Vendor, v.RequestID})
				}
			}
			return a.print(views, t)
		}),
	}
}

// projectIDs is the project that was named, or every one.
func (s *stack) projectIDs(ctx context.Context, named []string) ([]string, error) {
	if len(named) > 0 {
		_, err := s.load(ctx, named[0])
		return named, err
	}
	projects, err := s.projects.ListProjects(ctx)
	ids := make([]string, len(projects))
	for i, p := range projects {
		ids[i] = p.ID
	}
	return ids, err
}

func (a *app) uncertainResolve() *cobra.Command {
	var confirm, refund bool
	var reason string
	cmd := &cobra.Command{
		Use:   "resolve PROJECT ID",
		Short: "Say that an uncertain SMS was sent, or give its credits back",
		Long: `Say that an uncertain SMS was sent (--confirm: it stays charged), or give its
credits back (--refund: counts once, as a ledger entry of its own). Ask the
vendor first. If the answer is lost, repeat the command. A resolution is final.`,
		Example: `  svc sms uncertain resolve acme 1767225600000000-abcdefgh --refund --reason "vendor has no record of it"`,
		Args:    cobra.ExactArgs(2),
		RunE: a.on(func(ctx context.Context, s *stack, args []string) error {
			verdict := credit.VerdictConfirmed
			if refund {
				verdict = credit.VerdictRefunded
			}
			if confirm == refund {
				return &usageError{"give --confirm or --refund, one of them"}
			}
			if reason == "" {
				return &usageError{"give a --reason: it stands in the ledger"}
			}
			key, err := credit.ParseKey(args[1])
			if err != nil {
				return &usageError{`ID is one that "svc sms uncertain list" shows, not ` + strconv.Quote(args[1])}
			}
			if _, err := s.load(ctx, args[0]); err != nil {
				return err
			}
			actor, err := s.actor(ctx)
			if err != nil {
				return err
			}
			entry, err := s.credits.Resolve(ctx, args[0], key, credit.Resolution{Verdict: verdict, Reason: reason, Actor: actor})
			if err != nil {
				return err
			}
			balance, err := s.credits.Balance(ctx, args[0])
			if err != nil {
				return err
			}
			r := entry.Resolution
			return a.print(
				struct {
					ProjectID  string         `json:"project_id"`
					ID         credit.Key     `json:"id"`
					Credits    int64          `json:"credits"`
					Resolution resolutionView `json:"resolution"`
					Balance    int64          `json:"balance"`
				}{args[0], entry.Key, entry.Credits, resolutionView(r), balance},
				table{rows: [][]string{
					{"Project", args[0]}, {"SMS", string(entry.Key)}, {"Credits", grouped(entry.Credits)},
					{"Resolution", string(r.Verdict)}, {"Reason", r.Reason}, {"By", r.Actor}, {"Balance", grouped(balance) + " credits"},
				}})
		}),
	}
	cmd.Flags().BoolVar(&confirm, "confirm", false, "it was sent: it stays charged")
	cmd.Flags().BoolVar(&refund, "refund", false, "it was not: credit it back")
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the ledger")
	return cmd
}

// What came of a test message that was not accepted.
var (
	errNotSent   = errors.New("not sent: the vendor could not be reached")
	errRejected  = errors.New("rejected: the vendor refused the message")
	errAccount   = errors.New("rejected: the vendor refused the account or its key")
	errNoAnswer  = errors.New("uncertain: the request left, no answer came")
	errUnsettled = errors.New("uncertain: the vendor's answer cannot be understood")
)

var errByClass = map[upstream.Class]error{
	upstream.NotSent:            errNotSent,
	upstream.Rejected:           errRejected,
	upstream.CredentialsRefused: errAccount,
	upstream.NoAnswer:           errNoAnswer,
	upstream.Unusable:           errUnsettled,
}

// payers says whose account at the vendor pays a test message.
var payers = map[project.Mode]string{
	project.Managed: "the service's own account at ",
	project.BYOK:    "the project's own account at ",
}

func (a *app) smsTest() *cobra.Command {
	var env, to, text string
	var yes bool
	cmd := &cobra.Command{
		Use:   "test PROJECT VENDOR",
		Short: "Send one SMS through an integration",
		Long: `Send one SMS through an integration, active or not, as the service would: same
settings, same secret, same wire format. It is a real message that the vendor
bills. The project's credits are not charged, and nothing stands in its ledger.

Managed integrations of AWS are tried with the AWS credentials of whoever runs
the command; in service the function's own role signs.`,
		Example: `  svc sms test acme quicksend --env production --to 0771234567`,
		Args:    cobra.ExactArgs(2),
		RunE: a.on(func(ctx context.Context, s *stack, args []string) error {
			environment, err := parseEnvironment(env)
			if err != nil {
				return err
			}
			number, ok := project.NormalNumber(to)
			if !ok {
				return &usageError{"--to is 07XXXXXXXX or +947XXXXXXXX, not " + strconv.Quote(to)}
			}
			count, unicode := units.Count(text)
			if count < 1 || count > units.Most {
				return &usageError{fmt.Sprintf("--message is 1 to %d SMS units, not %d", units.Most, count)}
			}
			account, err := s.smsAccount(ctx, args[0], environment, args[1])
			if err != nil {
				return err
			}
			vendor := sms.NewTable(s.aws).Find(args[1])
			mode := account.Integration.Mode
			a.note("From     %s (%s) through %s, sender %s", args[0], environment, vendor.Title, cell(account.Settings["sender_id"]))
			if account.Endpoint != "" {
				a.note("Endpoint %s", account.Endpoint)
			}
			a.note("To       %s", number)
			a.note("Message  %q, SMS units: %d", text, count)
			a.note("Paid by  %s%s; the project's credits are not charged", payers[mode], vendor.Title)
			if vendor.ManagedWithoutSecret && mode == project.Managed {
				a.note("Signed   with your own AWS credentials: the function's role, which signs in service, is not tried")
			}
			if err := a.confirm(ctx, yes, "Send it?"); err != nil {
				return err
			}
			receipt, err := vendor.New(s.vendors, account).Send(ctx, sms.Message{To: number, Text: text, Unicode: unicode})
			if err != nil {
				return fmt.Errorf("%w (%w)", errByClass[upstream.ClassOf(err)], err)
			}
			return a.print(
				struct {
					ProjectID   string              `json:"project_id"`
					Environment project.Environment `json:"environment"`
					Vendor      string              `json:"vendor"`
					Mode        project.Mode        `json:"mode"`
					To          string              `json:"to"`
					Units       int                 `json:"units"`
					Outcome     string              `json:"outcome"`
					Status      string              `json:"status"`
					ID          string              `json:"id"`
				}{args[0], environment, vendor.Name, mode, number, count, "accepted", receipt.Status, receipt.ID},
				table{rows: [][]string{{"Outcome", "accepted by " + vendor.Title}, {"Status", receipt.Status}, {"ID", receipt.ID}}})
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&env, "env", string(project.Development), "development or production")
	flags.StringVar(&to, "to", "", "number that gets it, 07XXXXXXXX or +947XXXXXXXX")
	flags.StringVar(&text, "message", "A test message of SVC API.", "text of the message")
	flags.BoolVar(&yes, "yes", false, "send without asking")
	return cmd
}

// smsAccount resolves one SMS integration of a project, with its secret.
func (s *stack) smsAccount(ctx context.Context, projectID string, env project.Environment, vendor string) (upstream.Account, error) {
	o, err := findOffer(string(project.SMS), vendor)
	if err != nil {
		return upstream.Account{}, err
	}
	rec, err := s.load(ctx, projectID)
	if err != nil {
		return upstream.Account{}, err
	}
	i := rec.Integration(env, project.SMS, vendor)
	if i == nil {
		return upstream.Account{}, fmt.Errorf("integration %s: %w", project.IntegrationID(env, project.SMS, vendor), project.ErrNotFound)
	}
	return s.vendors.Resolve(ctx, projectID, *i, &o.spec, s.secrets)
}
