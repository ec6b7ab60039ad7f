package main

import (
	"context"
	"crypto/rand"
	"fmt"

	"github.com/spf13/cobra"

	"svcapi/cmd/svc/app"
	"svcapi/cmd/svc/catalog"
	"svcapi/functions/sms/units"
	"svcapi/functions/sms/vendors"
	"svcapi/shared/books"
	"svcapi/shared/project"
	"svcapi/shared/project/admin"
	"svcapi/shared/upstream"
	"svcapi/shared/wallet"
)

// uncertainSMS is an uncertain charge in the format for programs.
type uncertainSMS struct {
	ProjectID string `json:"project_id"`
	books.Entry
}

func listUncertain(a *app.App) *cobra.Command {
	var projectID string // empty for all projects
	var resolved bool
	cmd := a.Command("list [PROJECT]", app.Bind(&projectID), func(ctx context.Context, s *app.Stack) error {
		projects, err := s.ListProjects(ctx, projectID)
		if err != nil {
			return err
		}
		var all []uncertainSMS
		for _, p := range projects {
			entries, err := s.Credits.Uncertain(ctx, p.ID)
			if err == nil && resolved {
				var more []books.Entry
				more, err = s.Credits.Resolved(ctx, p.ID)
				entries = append(entries, more...)
			}
			if err != nil {
				return err
			}
			for _, e := range entries {
				all = append(all, uncertainSMS{p.ID, e})
			}
		}
		const header = "PROJECT, ID, TIME, CREDITS, USD, ENVIRONMENT, VENDOR, REQUEST, RESOLUTION, REFERENCE"
		return app.PrintList(s.App, header, "No SMS is uncertain.", all, func(v uncertainSMS) []string {
			resolution := ""
			if v.Resolution.Verdict != "" {
				resolution = entryNote(v.Entry)
			}
			return []string{v.ProjectID, string(v.Key), s.Time(v.Key.Time()), s.Number(v.Credits), app.Dollars(v.Credits),
				v.Environment, v.Vendor, v.RequestID, resolution, v.Reference}
		})
	})
	cmd.Flags().BoolVar(&resolved, "all", false, "also those that are resolved")
	return cmd
}

// parseUncertain reads the argument ID.
func parseUncertain(args []string) (wallet.Key, error) {
	key, err := wallet.ParseKey(args[0])
	if err != nil {
		err = app.Usagef(`ID is an ID of "svc sms uncertain list", not %q`, args[0])
	}
	return key, err
}

func resolveUncertain(a *app.App) *cobra.Command {
	var key wallet.Key
	var confirm, refund bool
	resolution := books.Resolution{Verdict: books.VerdictConfirmed}
	cmd := a.ProjectCommand("resolve PROJECT ID", func(args []string) (err error) {
		if refund {
			resolution.Verdict = books.VerdictRefunded
		}
		if confirm == refund {
			return app.Usagef("give either --confirm or --refund")
		}
		if resolution.Reason == "" {
			return app.Usagef("give a --reason for the ledger")
		}
		key, err = parseUncertain(args)
		return err
	}, func(ctx context.Context, s *app.Stack, rec *project.Record) (err error) {
		if resolution.Actor, err = s.Actor(ctx); err != nil {
			return err
		}
		entry, err := s.Credits.Resolve(ctx, rec.ID, key, resolution)
		if err != nil {
			return err
		}
		balance, err := s.Credits.Balance(ctx, rec.ID)
		if err != nil {
			return err
		}
		r := entry.Resolution
		return s.PrintRows(map[string]any{
			"project_id": rec.ID, "id": entry.Key, "credits": entry.Credits, "resolution": r, "balance": balance,
		}, "Project", rec.ID, "SMS", string(entry.Key), "Credits", app.Credits(entry.Credits),
			"Resolution", string(r.Verdict), "Reason", r.Reason, "By", r.Actor, "Balance", app.Credits(balance))
	})
	cmd.Flags().BoolVar(&confirm, "confirm", false, "the SMS was sent: the charge stays")
	cmd.Flags().BoolVar(&refund, "refund", false, "the SMS was not sent: refund the credits")
	cmd.Flags().StringVar(&resolution.Reason, "reason", "", "reason for the ledger")
	return cmd
}

const mayHaveBeenSent = "The message may have been sent: ask the vendor before you send again."

// sendFailures describes the outcomes of a test message that the vendor has not accepted.
var sendFailures = map[upstream.Class]struct {
	text string
	exit int
	hint string
}{
	upstream.NotSent: {"not sent: the vendor could not be reached", app.ExitFailed,
		"Check the integration's endpoint and the network."},
	upstream.Rejected: {"rejected: the vendor refused the message", app.ExitRefused,
		"Nothing was sent. The vendor's message is above: check the number, the sender and the text."},
	upstream.AccountRefused: {"rejected: the vendor refused to send for the account", app.ExitRefused,
		"Nothing was sent. The vendor's message is above: check the balance, the sender and the permitted hours."},
	upstream.TooFast: {"rejected: the vendor gets too many requests", app.ExitRefused,
		"Nothing was sent: send it again later."},
	upstream.CredentialsRefused: {"rejected: the vendor refused the account or its key", app.ExitRefused,
		`Nothing was sent. Correct the account: "svc integration set --ask", for Managed integrations "svc vendor account".`},
	upstream.NoResponse: {"uncertain: the request was sent, and no response came", app.ExitFailed, mayHaveBeenSent},
	upstream.Unusable:   {"uncertain: the vendor's response is not valid", app.ExitFailed, mayHaveBeenSent},
}

// normalize replaces the number of the flag --to by its E.164 form.
func normalize(to *string) error {
	number, ok := project.NormalNumber(*to)
	if !ok {
		return app.Usagef("--to is 07XXXXXXXX or +947XXXXXXXX, not %q", *to)
	}
	*to = number
	return nil
}

func testSMS(a *app.App) *cobra.Command {
	var name, to string
	var env []project.Environment // one
	var message vendors.Message
	var count int
	var yes bool
	cmd := a.ProjectCommand("test PROJECT VENDOR", func(args []string) error {
		name = args[0]
		if _, err := catalog.Find(string(project.SMS), name); err != nil {
			return err
		}
		if err := normalize(&to); err != nil {
			return err
		}
		message.To = []string{to}
		if count, message.Unicode = units.Count(message.Text); count < 1 || count > units.Most {
			return app.Usagef("--message is 1 to %d SMS units, not %d", units.Most, count)
		}
		return nil
	}, func(ctx context.Context, s *app.Stack, rec *project.Record) error {
		i := admin.Integration(rec, env[0], project.SMS, name)
		if i == nil {
			return fmt.Errorf("integration %s: %w", project.IntegrationID(env[0], project.SMS, name), admin.ErrNotFound)
		}
		account, err := catalog.Resolve(ctx, s, rec.ID, *i)
		if err != nil {
			return err
		}
		vendor := vendors.NewTable(s.AWS).Find(name)
		s.Note("From     %s (%s) through %s, sender %s", rec.ID, i.Environment, vendor.Title,
			app.Cell(account.Settings["sender_id"]))
		if account.Endpoint != "" {
			s.Note("Endpoint %s", account.Endpoint)
		}
		s.Note("To       %s", to)
		s.Note("Message  %q, SMS units: %d", message.Text, count)
		payer := map[project.Mode]string{project.Managed: "service", project.BYOK: "project"}[i.Mode]
		s.Note("Paid by  the %s's own account at %s; the project's credits are not charged", payer, vendor.Title)
		signer := ""
		if vendor.ManagedAction != "" && i.Mode == project.Managed {
			if signer, err = s.Actor(ctx); err != nil {
				return err
			}
			s.Note("Signed   by %s, your own AWS identity, and not by the role of the function: svc integration check checks "+
				"that", signer)
		}
		if err := s.Confirm(ctx, yes, "Send it?"); err != nil {
			return err
		}
		message.Key = rand.Text()
		receipt, err := vendor.New(s.Vendors, account).Send(ctx, message)
		if err != nil {
			failure := sendFailures[upstream.ClassOf(err)]
			return fmt.Errorf("%w (%w)", app.Failf(failure.exit, failure.hint, "%s", failure.text), err)
		}
		return s.PrintRows(map[string]any{
			"project_id": rec.ID, "environment": i.Environment, "vendor": vendor.Name, "mode": i.Mode, "to": to,
			"units": count, "outcome": "accepted", "status": receipt.Status, "id": receipt.ID, "signed_by": signer,
		}, "Outcome", "accepted by "+vendor.Title, "Status", receipt.Status, "ID", receipt.ID)
	})
	app.EnvironmentFlag(cmd, &env, "development", false)
	flags := cmd.Flags()
	flags.StringVar(&to, "to", "", "number of the recipient, 07XXXXXXXX or +947XXXXXXXX")
	flags.StringVar(&message.Text, "message", "A test message of SVC API.", "text of the message")
	flags.BoolVar(&yes, "yes", false, "send without asking")
	return cmd
}
