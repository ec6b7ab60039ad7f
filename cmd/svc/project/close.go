package project

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"svcapi/cmd/svc/app"
	"svcapi/cmd/svc/catalog"
	"svcapi/shared/burner"
	"svcapi/shared/credit"
	"svcapi/shared/project"
	"svcapi/shared/upstream"
)

// Closed is the result of "svc project close".
type Closed struct {
	ProjectID   string    `json:"project_id"`
	Closed      time.Time `json:"closed"`
	ReopenUntil time.Time `json:"reopen_until"`
	Credits     int64     `json:"credits"` // that the adjustment has taken
	Secrets     []string  `json:"secrets"` // scheduled for deletion
	Domains     int       `json:"domains"` // of its own, deleted
	Uncertain   int       `json:"uncertain"`
}

func closeProject(a *app.App) *cobra.Command {
	var refunded string
	var forfeit, yes bool
	cmd := a.ProjectCommand(&cobra.Command{
		Use:   "close PROJECT",
		Short: "End a project whose customer leaves: its access, secrets, settings and credits",
		Long: `End a project whose customer leaves. The command revokes the credentials, deactivates
the integrations, deletes their settings and secrets, the trial destinations and the
project's own e-mail domains, and takes the remaining credits by an adjustment. The
ID, the name, the limits, the wallet and its ledger stay: they are accounts, and no
other project gets the ID. docs/operate.md lists the personal data.

With a balance the command needs --refunded or --forfeit. It refuses while a
reservation is pending: pause the project a minute before. It may be repeated, and
then finishes what an interruption left.`,
		Example: `  svc project close acme --refunded "transfer 2031" --dry-run
  svc project close acme --refunded "transfer 2031" --yes
  svc project close acme --forfeit --yes`,
	}, func([]string) error {
		if refunded != "" && forfeit {
			return app.Usagef("give --refunded or --forfeit, not both")
		}
		return nil
	}, func(ctx context.Context, s *app.Stack, rec *project.Record) error {
		m := credit.Movement{Project: rec.ID, RequestID: uuid.NewString()}
		switch {
		case refunded != "":
			m.Reason = "closed, refunded: " + refunded
		case forfeit:
			m.Reason = "closed, forfeited"
		}
		wallet, err := s.Credits.Wallet(ctx, rec.ID)
		if err != nil {
			return err
		}
		if wallet != nil {
			m.Credits = wallet.Balance
			if err := refuseClosing(s, rec.ID, wallet, m.Reason); err != nil {
				return err
			}
		}
		question := fmt.Sprintf("Close %s on stage %s? Its requests will be refused, and its secrets and settings deleted.", rec.ID, s.Stage)
		if err := s.Confirm(ctx, yes, question, closingSteps(s, rec, m)...); err != nil {
			return err
		}
		if m.Actor, err = s.Actor(ctx); err != nil {
			return err
		}
		done, err := finishClosing(ctx, s, m)
		if err != nil {
			s.Note("%s is not closed completely: run the command again, which finishes it.", rec.ID)
			return err
		}
		return done.print(s)
	})
	flags := cmd.Flags()
	flags.StringVar(&refunded, "refunded", "", "`how` the balance was refunded, as the reason of its adjustment")
	flags.BoolVar(&forfeit, "forfeit", false, "take the balance without a refund")
	flags.BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

// refuseClosing refuses while the wallet has reservations, or credits without a reason to take them.
func refuseClosing(s *app.Stack, id string, w *credit.Wallet, reason string) error {
	refused := &app.FailureError{Exit: app.ExitRefused}
	switch {
	case !w.Oldest.IsZero():
		refused.Text = fmt.Sprintf("refused: requests of %s have reserved %s since %s", id, app.Credits(w.Reserved), app.Second(w.Oldest))
		refused.Hint = "Pause it, and run the command again a minute later: " + s.Line("project pause %s", id)
	case w.Balance > 0 && reason == "":
		refused.Text = fmt.Sprintf("refused: %s has a balance of %s", id, app.Credits(w.Balance))
		refused.Hint = "Give --refunded with the reason of the adjustment, or --forfeit:\n" +
			s.Line("project close %s --refunded %q", id, "transfer 2031") + "\n" + s.Line("project close %s --forfeit", id)
	default:
		return nil
	}
	return refused
}

// closingSteps describes what the command does, for a dry run.
func closingSteps(s *app.Stack, rec *project.Record, m credit.Movement) []string {
	steps := []string{fmt.Sprintf("close %s: revoke %s, deactivate %s and delete their settings", rec.ID,
		app.Count(len(rec.Credentials), "credential", "credentials"), app.Count(len(rec.Integrations), "integration", "integrations"))}
	if m.Credits > 0 {
		steps = append(steps, fmt.Sprintf("book an adjustment of -%s: %s", app.Credits(m.Credits), m.Reason))
	}
	return append(steps, fmt.Sprintf("delete the secrets svc/%s/*/%s/*, and the own e-mail domains", s.Stage, rec.ID))
}

// finishClosing takes all steps that are left. The project's access ends first, so that no request reserves what the
// adjustment takes.
func finishClosing(ctx context.Context, s *app.Stack, m credit.Movement) (done Closed, err error) {
	closed, err := s.Projects.Close(ctx, m.Project)
	if err != nil {
		return done, err
	}
	done = Closed{ProjectID: m.Project, Closed: closed.Closed, ReopenUntil: closed.Closed.Add(project.ReopenFor), Secrets: []string{}}
	m.ID = credit.NewKey(time.Now(), m.RequestID)
	if done.Credits, err = s.Credits.Empty(ctx, m); err != nil {
		return done, err
	}
	for _, kind := range project.Kinds() {
		name, err := s.Secrets.Delete(ctx, kind, m.Project)
		if err != nil {
			return done, err
		}
		if name != "" {
			done.Secrets = append(done.Secrets, name)
		}
	}
	judged, err := s.Burners.List(ctx, m.Project)
	if err != nil {
		return done, err
	}
	domains := slices.Concat(judged.Of(burner.Disposable), judged.Of(burner.Allowed))
	uncertain, err := s.Credits.Uncertain(ctx, m.Project)
	done.Domains, done.Uncertain = len(domains), len(uncertain)
	return done, errors.Join(err, s.Burners.Remove(ctx, m.Project, domains...))
}

func (c Closed) print(s *app.Stack) error {
	if c.Uncertain > 0 {
		s.Note("%s left: a resolution may return credits, and then run the command again. %s",
			app.Count(c.Uncertain, "uncertain SMS is", "uncertain SMS are"), s.Line("sms uncertain list %s", c.ProjectID))
	}
	return s.PrintRows(c, "Project", c.ProjectID, "State", "closed"+soon, "Reopen until", app.Second(c.ReopenUntil),
		"Credits taken", app.Credits(c.Credits), "Secrets", cmp.Or(strings.Join(c.Secrets, ", "), "none")+", deleted for good after 30 days",
		"Own domains", app.Count(c.Domains, "domain", "domains")+" deleted", "Left", "the ID, the name, the limits, the wallet and its ledger")
}

func reopen(a *app.App) *cobra.Command {
	return a.ProjectCommand(&cobra.Command{
		Use:   "reopen PROJECT",
		Short: "Open a closed project again, within 30 days; prints what must be set again",
		Long: `Open a closed project again, within 30 days. Its credentials stay revoked, its
integrations inactive, and their settings and secrets are gone: the command prints
the commands that make the project usable.`,
		Example: "  svc project reopen acme",
	}, nil, func(ctx context.Context, s *app.Stack, rec *project.Record) error {
		if rec.Closed.IsZero() {
			return fmt.Errorf("%w: project %s is not closed", app.ErrRefused, rec.ID)
		}
		p, err := s.Projects.Reopen(ctx, rec.ID)
		if err := printChange(s, p, err, "State", View.state); err != nil {
			return err
		}
		s.Note("Revoked credentials, settings and secrets are gone. These commands make the project usable:")
		for _, env := range project.Environments() {
			if slices.ContainsFunc(rec.Credentials, func(c project.Credential) bool { return c.Environment == env }) {
				s.Note("%s", s.Line("credential issue %s --env %s", rec.ID, env))
			}
		}
		for _, i := range rec.Integrations {
			name := fmt.Sprintf("%s %s %s --env %s", rec.ID, i.Kind, i.Vendor, i.Environment)
			o, err := catalog.Find(string(i.Kind), i.Vendor)
			if err != nil {
				continue // this version has no such vendor
			}
			settings := ""
			for _, field := range upstream.Missing(o.Spec.Settings, i.Settings) {
				settings += " --setting " + field + "=VALUE"
			}
			if settings != "" || i.Mode == project.BYOK && len(o.Spec.Secrets) > 0 {
				s.Note("%s", s.Line("integration set %s%s", name, settings))
			}
			s.Note("%s", s.Line("integration enable %s", name))
		}
		return nil
	})
}
