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

const mayHaveBeenSent = "The message may have been sent: ask the vendor before you send again."

// failures describes the outcomes of a test message that the vendor has not accepted.
var failures = map[upstream.Class]*app.FailureError{
	upstream.NotSent: {Text: "not sent: the vendor could not be reached", Exit: app.ExitFailed, Hint: "Check the integration's endpoint and the network."},
	upstream.Rejected: {
		Text: "rejected: the vendor refused the message", Exit: app.ExitRefused,
		Hint: "Nothing was sent. The vendor's message is above: check the number, the sender and the text.",
	},
	upstream.CredentialsRefused: {
		Text: "rejected: the vendor refused the account or its key", Exit: app.ExitRefused,
		Hint: `Nothing was sent. Correct the account: "svc integration set --ask", for Managed integrations "svc vendor account".`,
	},
	upstream.NoResponse: {Text: "uncertain: the request was sent, and no response came", Exit: app.ExitFailed, Hint: mayHaveBeenSent},
	upstream.Unusable:   {Text: "uncertain: the vendor's response is not valid", Exit: app.ExitFailed, Hint: mayHaveBeenSent},
}

// payers describes the account at the vendor that pays for a test message.
var payers = map[project.Mode]string{
	project.Managed: "the service's own account at ",
	project.BYOK:    "the project's own account at ",
}

type testOptions struct {
	vendor      string
	environment []project.Environment // one
	message     vendors.Message
	units       int
	yes         bool
}

func test(a *app.App) *cobra.Command {
	o := &testOptions{}
	cmd := a.ProjectCommand(&cobra.Command{
		Use:   "test PROJECT VENDOR",
		Short: "Send one SMS through an integration",
		Long: `Send one SMS through an integration, active or not, as the service would: same
settings, same secret, same wire format. The message is real, and the vendor bills
it. The command charges no credits and writes no ledger entry.

For Managed integrations of AWS the command uses the AWS credentials of the
operator; the service uses the role of the function.`,
		Example: `  svc sms test acme quicksend --env production --to 0771234567`,
	}, o.parse, o.run)
	app.EnvironmentFlag(cmd, &o.environment)
	flags := cmd.Flags()
	flags.StringVar(&o.message.To, "to", "", "number of the recipient, 07XXXXXXXX or +947XXXXXXXX")
	flags.StringVar(&o.message.Text, "message", "A test message of SVC API.", "text of the message")
	flags.BoolVar(&o.yes, "yes", false, "send without asking")
	return cmd
}

func (o *testOptions) parse(args []string) error {
	o.vendor = args[0]
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

func (o *testOptions) run(ctx context.Context, s *app.Stack, rec *project.Record) error {
	if _, err := catalog.Find(string(project.SMS), o.vendor); err != nil {
		return err
	}
	i := rec.Integration(o.environment[0], project.SMS, o.vendor)
	if i == nil {
		id := project.IntegrationID(o.environment[0], project.SMS, o.vendor)
		return fmt.Errorf("integration %s: %w", id, project.ErrNotFound)
	}
	account, err := catalog.Resolve(ctx, s, rec.ID, *i)
	if err != nil {
		return err
	}
	vendor, mode := vendors.NewTable(s.AWS).Find(o.vendor), account.Integration.Mode
	s.Note("From     %s (%s) through %s, sender %s", rec.ID, i.Environment, vendor.Title, app.Cell(account.Settings["sender_id"]))
	if account.Endpoint != "" {
		s.Note("Endpoint %s", account.Endpoint)
	}
	s.Note("To       %s", o.message.To)
	s.Note("Message  %q, SMS units: %d", o.message.Text, o.units)
	s.Note("Paid by  %s%s; the project's credits are not charged", payers[mode], vendor.Title)
	if vendor.ManagedWithoutSecret && mode == project.Managed {
		s.Note("Signed   with your own AWS credentials; this does not test the role of the function")
	}
	if err := s.Confirm(ctx, o.yes, "Send it?"); err != nil {
		return err
	}
	receipt, err := vendor.New(s.Vendors, account).Send(ctx, o.message)
	if err != nil {
		return fmt.Errorf("%w (%w)", failures[upstream.ClassOf(err)], err)
	}
	return s.Print(struct {
		ProjectID   string              `json:"project_id"`
		Environment project.Environment `json:"environment"`
		Vendor      string              `json:"vendor"`
		Mode        project.Mode        `json:"mode"`
		To          string              `json:"to"`
		Units       int                 `json:"units"`
		Outcome     string              `json:"outcome"`
		Status      string              `json:"status"`
		ID          string              `json:"id"`
	}{rec.ID, i.Environment, vendor.Name, mode, o.message.To, o.units, "accepted", receipt.Status, receipt.ID},
		app.Table{Rows: app.Rows("Outcome", "accepted by "+vendor.Title, "Status", receipt.Status, "ID", receipt.ID)})
}
