package sms

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"svcapi/cmd/svc/app"
	"svcapi/cmd/svc/catalog"
	"svcapi/functions/sms/units"
	"svcapi/functions/sms/vendors"
	"svcapi/shared/project"
	"svcapi/shared/upstream"
)

const mayBeSent = "The message may have been sent: ask the vendor before you send again."

// failures are what came of a test message that was not accepted.
var failures = map[upstream.Class]*app.FailureError{
	upstream.NotSent: {Text: "not sent: the vendor could not be reached", Exit: app.ExitFailed, Hint: "Check the integration's endpoint and the way there."},
	upstream.Rejected: {
		Text: "rejected: the vendor refused the message", Exit: app.ExitRefused,
		Hint: "Nothing was sent. The vendor's own words are above: check the number, the sender and the text.",
	},
	upstream.CredentialsRefused: {
		Text: "rejected: the vendor refused the account or its key", Exit: app.ExitRefused,
		Hint: `Nothing was sent. Correct the account: "svc integration set --ask", for Managed ones "svc vendor account".`,
	},
	upstream.NoAnswer: {Text: "uncertain: the request left, no answer came", Exit: app.ExitFailed, Hint: mayBeSent},
	upstream.Unusable: {Text: "uncertain: the vendor's answer cannot be understood", Exit: app.ExitFailed, Hint: mayBeSent},
}

// payers says whose account at the vendor pays a test message.
var payers = map[project.Mode]string{
	project.Managed: "the service's own account at ",
	project.BYOK:    "the project's own account at ",
}

type testOptions struct {
	*app.App
	projectID, vendor string
	environment       project.Environment
	message           vendors.Message
	units             int
	yes               bool
}

func test(a *app.App) *cobra.Command {
	o := &testOptions{App: a}
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
		RunE:    a.On(o.parse, o.run),
	}
	app.EnvironmentFlag(cmd, &o.environment)
	flags := cmd.Flags()
	flags.StringVar(&o.message.To, "to", "", "number that gets it, 07XXXXXXXX or +947XXXXXXXX")
	flags.StringVar(&o.message.Text, "message", "A test message of SVC API.", "text of the message")
	flags.BoolVar(&o.yes, "yes", false, "send without asking")
	return cmd
}

func (o *testOptions) parse(args []string) error {
	o.projectID, o.vendor = args[0], args[1]
	if err := app.ParseEnvironment(&o.environment); err != nil {
		return err
	}
	number, ok := project.NormalNumber(o.message.To)
	if !ok {
		return app.Usagef("--to is 07XXXXXXXX or +947XXXXXXXX, not %q", o.message.To)
	}
	o.message.To = number
	if o.units, o.message.Unicode = units.Count(o.message.Text); o.units < 1 || o.units > units.Most {
		return app.Usagef("--message is 1 to %d SMS units, not %d", units.Most, o.units)
	}
	return nil
}

func (o *testOptions) run(ctx context.Context, s *app.Stack) error {
	account, err := o.account(ctx, s)
	if err != nil {
		return err
	}
	vendor, mode := vendors.NewTable(s.AWS).Find(o.vendor), account.Integration.Mode
	o.Note("From     %s (%s) through %s, sender %s", o.projectID, o.environment, vendor.Title, app.Cell(account.Settings["sender_id"]))
	if account.Endpoint != "" {
		o.Note("Endpoint %s", account.Endpoint)
	}
	o.Note("To       %s", o.message.To)
	o.Note("Message  %q, SMS units: %d", o.message.Text, o.units)
	o.Note("Paid by  %s%s; the project's credits are not charged", payers[mode], vendor.Title)
	if vendor.ManagedWithoutSecret && mode == project.Managed {
		o.Note("Signed   with your own AWS credentials: the function's role, which signs in service, is not tried")
	}
	if err := o.Confirm(ctx, o.yes, "Send it?"); err != nil {
		return err
	}
	receipt, err := vendor.New(s.Vendors, account).Send(ctx, o.message)
	if err != nil {
		return fmt.Errorf("%w (%w)", failures[upstream.ClassOf(err)], err)
	}
	return o.Print(struct {
		ProjectID   string              `json:"project_id"`
		Environment project.Environment `json:"environment"`
		Vendor      string              `json:"vendor"`
		Mode        project.Mode        `json:"mode"`
		To          string              `json:"to"`
		Units       int                 `json:"units"`
		Outcome     string              `json:"outcome"`
		Status      string              `json:"status"`
		ID          string              `json:"id"`
	}{o.projectID, o.environment, vendor.Name, mode, o.message.To, o.units, "accepted", receipt.Status, receipt.ID},
		app.Table{Rows: [][]string{{"Outcome", "accepted by " + vendor.Title}, {"Status", receipt.Status}, {"ID", receipt.ID}}})
}

// account resolves the project's integration, with its secret.
func (o *testOptions) account(ctx context.Context, s *app.Stack) (upstream.Account, error) {
	if _, err := catalog.Find(string(project.SMS), o.vendor); err != nil {
		return upstream.Account{}, err
	}
	rec, err := s.Load(ctx, o.projectID)
	if err != nil {
		return upstream.Account{}, err
	}
	i := rec.Integration(o.environment, project.SMS, o.vendor)
	if i == nil {
		return upstream.Account{}, fmt.Errorf("integration %s: %w", project.IntegrationID(o.environment, project.SMS, o.vendor), project.ErrNotFound)
	}
	return catalog.Resolve(ctx, s, o.projectID, *i)
}
