package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"svcapi/cmd/svc/app"
	"svcapi/cmd/svc/catalog"
	"svcapi/shared/burner"
	"svcapi/shared/project"
	"svcapi/shared/project/admin"
	"svcapi/shared/wallet"
)

func createCommand(a *app.App) *cobra.Command {
	var p project.Project
	var given limitFlags
	var like string
	cmd := a.Command("create NAME", func(args []string) error {
		p.Name = args[0]
		if len(p.TrialDestinations) > 0 && !p.Trial {
			return app.Usagef("--allow goes with --trial")
		}
		if p.Trial && len(p.TrialDestinations) == 0 {
			return app.Usagef("--trial needs --allow: a trial without destinations can send nothing")
		}
		return nil
	}, func(ctx context.Context, s *app.Stack) error {
		rec, judged := &project.Record{}, burner.Domains{}
		if like != "" {
			var err error
			if rec, err = s.Load(ctx, like); err == nil {
				judged, err = s.Burners.List(ctx, like)
			}
			if err != nil {
				return err
			}
			if p.Limit, p.Limits, p.Prices = rec.Limit, rec.Limits, rec.Prices; !given.flags.Changed("trial") {
				p.Trial, p.TrialDestinations = rec.Trial, rec.TrialDestinations
			}
		}
		given.apply(&p.Limit, &p.Limits, like == "")
		return createProject(ctx, s, p, rec.Integrations, judged)
	})
	flags := cmd.Flags()
	flags.StringVar(&p.ID, "id", "", "project ID, 3 to 32 of a-z, 0-9 and - (default: a random one)")
	flags.StringVar(&like, "like", "",
		"the project whose limits, trial, prices and integrations the new project gets; other flags come first")
	flags.BoolVar(&p.Trial, "trial", false, "send SMS to the allowed destinations only")
	flags.StringArrayVar(&p.TrialDestinations, "allow", nil, "a destination that the trial allows (repeat for more)")
	given.add(flags, 600)
	return cmd
}

// createProject creates a project with its integrations, all or nothing, then its empty wallet and its judgements about
// domains, and prints the project. Secrets, credentials and credits are not copied: an integration without a stored
// secret is inactive until "svc integration set" stores the secret.
func createProject(ctx context.Context, s *app.Stack, p project.Project, all []project.Integration,
	judged burner.Domains) error {
	p.ID = cmp.Or(p.ID, admin.NewID())
	for n := range all {
		i := &all[n]
		view, err := catalog.ViewOf(ctx, s, p.ID, *i)
		if err != nil {
			return err
		}
		if i.Active && view.Incomplete != "" {
			i.Active = false
			s.Note("%s is imported inactive: %s", project.IntegrationID(i.Environment, i.Kind, i.Vendor), view.Incomplete)
		}
	}
	created, err := s.Projects.CreateProject(ctx, p, all...)
	if err != nil {
		return err
	}
	if err := s.Credits.CreateWallet(ctx, created.ID); err != nil {
		return fmt.Errorf("the project %s exists, its wallet does not (a grant creates the wallet): %w", created.ID, err)
	}
	for _, j := range []burner.Judgement{burner.Disposable, burner.Allowed} {
		if err := s.Burners.Put(ctx, created.ID, j, judged.Of(j)...); err != nil {
			return fmt.Errorf("the project %s exists, and lacks own domains: %w", created.ID, err)
		}
	}
	noteUnlimited(s, created)
	rec, err := s.Load(ctx, created.ID)
	if err != nil {
		return err
	}
	views, err := catalog.ViewAll(ctx, s, rec)
	if err != nil {
		return err
	}
	view := struct {
		projectView
		Integrations []catalog.View `json:"integrations"`
	}{projectViewOf(created), views}
	return s.Print(view, app.Table{Rows: append(view.rows(), []string{"Integrations", strconv.Itoa(len(views))})})
}

func closeProject(a *app.App) *cobra.Command {
	var refunded string
	var forfeit, yes bool
	cmd := a.ProjectCommand("close PROJECT", func([]string) error {
		if refunded != "" && forfeit {
			return app.Usagef("give --refunded or --forfeit, not both")
		}
		return nil
	}, func(ctx context.Context, s *app.Stack, rec *project.Record) error {
		m := wallet.Entry{Project: rec.ID, RequestID: uuid.NewString()}
		switch {
		case refunded != "":
			m.Reason = "closed, refunded: " + refunded
		case forfeit:
			m.Reason = "closed, forfeited"
		}
		wallet, err := s.Credits.Wallet(ctx, rec.ID)
		switch {
		case err != nil:
			return err
		case wallet == nil:
		case !wallet.Oldest.IsZero():
			advice := "Run the command again in three minutes."
			if rec.Closed.IsZero() && !rec.Paused {
				advice = "Pause it, and run the command again three minutes later: " + s.Line("project pause %s", rec.ID)
			}
			return app.Failf(app.ExitRefused, advice, "refused: %s has an open lease of credits since %s",
				rec.ID, app.Second(wallet.Oldest))
		case wallet.Balance > 0 && m.Reason == "":
			return app.Failf(app.ExitRefused, "Give --refunded with the reason of its adjustment, or --forfeit:\n"+
				s.Line("project close %s --refunded 'transfer 2031'", rec.ID)+"\n"+s.Line("project close %s --forfeit", rec.ID),
				"refused: %s has a balance of %s", rec.ID, app.Credits(wallet.Balance))
		default:
			m.Credits = wallet.Balance
		}
		err = s.Confirm(ctx, yes, fmt.Sprintf("Close %s on stage %s? Its requests will be refused, its secrets and "+
			"settings deleted.", rec.ID, s.Stage),
			fmt.Sprintf("revoke %s, deactivate %s and delete their settings",
				app.Count(len(rec.Credentials), "credential", "credentials"),
				app.Count(len(rec.Integrations), "integration", "integrations")),
			strings.TrimSuffix(fmt.Sprintf("take %s by an adjustment: %s", app.Credits(m.Credits), m.Reason), ": "),
			fmt.Sprintf("delete the secrets svc/%s/*/%s/*, and its own e-mail domains", s.Stage, rec.ID))
		if err == nil {
			m.Actor, err = s.Actor(ctx)
		}
		if err != nil {
			return err
		}
		if err := finishClosing(ctx, s, m); err != nil {
			return fmt.Errorf("%s is not closed completely, run the command again: %w", rec.ID, err)
		}
		return nil
	})
	cmd.SuggestFor = []string{"delete"}
	flags := cmd.Flags()
	flags.StringVar(&refunded, "refunded", "", "`how` the balance was refunded, for the reason of its adjustment")
	flags.BoolVar(&forfeit, "forfeit", false, "take the balance without a refund")
	flags.BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

// finishClosing takes the remaining steps of a closing, and prints their results and what the project keeps. The first
// step ends the access, so that no request reserves credits that the adjustment takes.
func finishClosing(ctx context.Context, s *app.Stack, m wallet.Entry) error {
	closed, err := s.Projects.Close(ctx, m.Project)
	if err != nil {
		return err
	}
	m.Key = wallet.NewKey(time.Now(), m.RequestID)
	taken, err := s.Credits.Empty(ctx, m)
	if err != nil {
		return err
	}
	secrets := []string{}
	for _, kind := range admin.Kinds() {
		name, err := s.Secrets.Delete(ctx, kind, m.Project)
		if err != nil {
			return err
		}
		if name != "" {
			secrets = append(secrets, name)
		}
	}
	judged, err := s.Burners.List(ctx, m.Project)
	if err == nil {
		err = s.Burners.Remove(ctx, m.Project, slices.Concat(judged.Disposable, judged.Allowed)...)
	}
	if err != nil {
		return err
	}
	uncertain, err := s.Credits.Uncertain(ctx, m.Project)
	if err != nil {
		return err
	}
	if len(uncertain) > 0 {
		s.Note("%d SMS are uncertain: one that is refunded returns credits, and then run the command again.", len(uncertain))
	}
	until := closed.Closed.Add(admin.ReopenFor)
	return s.PrintRows(map[string]any{
		"project_id": m.Project, "closed": closed.Closed, "reopen_until": until, "credits": taken, "secrets": secrets,
		"uncertain": len(uncertain),
	}, "Project", m.Project, "State", "closed"+soon, "Reopen until", app.Second(until),
		"Credits taken", app.Credits(taken),
		"Deleted", cmp.Or(strings.Join(secrets, ", "), "no secret")+"; settings, trial destinations, own domains",
		"Left", "ID, name, limits, client IDs, wallet and ledger")
}

func reopenProject(a *app.App) *cobra.Command {
	return a.ProjectCommand("reopen PROJECT", nil, func(ctx context.Context, s *app.Stack, rec *project.Record) error {
		if rec.Closed.IsZero() {
			return fmt.Errorf("%w: project %s is not closed", app.ErrRefused, rec.ID)
		}
		p, err := s.Projects.Reopen(ctx, rec.ID)
		if err := printChange(s, p, err, "State", projectView.state); err != nil {
			return err
		}
		s.Note("Its credentials, settings and secrets are gone. These commands make it usable; set asks for what is missing:")
		for _, env := range admin.Environments() {
			if slices.ContainsFunc(rec.Credentials, func(c project.Credential) bool { return c.Environment == env }) {
				s.Note("%s", s.Line("credential issue %s --env %s", rec.ID, env))
			}
		}
		for _, i := range rec.Integrations {
			for _, command := range []string{"set", "enable"} {
				s.Note("%s", s.Line("integration %s %s %s %s --env %s", command, rec.ID, i.Kind, i.Vendor, i.Environment))
			}
		}
		return nil
	})
}

// transferFormat is the version of an exported project.
const transferFormat = 1

// transfer is an exported project: the settings of the operator, without secrets and credits.
type transfer struct {
	Format int `json:"format"`
	projectSettings
	Integrations []project.Integration `json:"integrations"`
	Burner       burner.Domains        `json:"burner"` // the project's own judgements about e-mail domains
}

func exportProject(a *app.App) *cobra.Command {
	return a.ProjectCommand("export PROJECT", nil, func(ctx context.Context, s *app.Stack, rec *project.Record) error {
		judged, err := s.Burners.List(ctx, rec.ID)
		if err != nil {
			return err
		}
		return s.PrintJSON(transfer{transferFormat, settingsOf(rec.Project),
			append([]project.Integration{}, rec.Integrations...), judged})
	})
}

func importProject(a *app.App) *cobra.Command {
	var id string
	var t transfer
	var p project.Project
	cmd := a.Command("import FILE", func(args []string) (err error) {
		if t, err = readTransfer(a, args[0]); err != nil {
			return err
		}
		t.ID = cmp.Or(id, t.ID)
		if p, err = t.project(); err != nil {
			return app.Usagef("per_recipient is %v", err)
		}
		return nil
	}, func(ctx context.Context, s *app.Stack) error {
		return createProject(ctx, s, p, t.Integrations, t.Burner)
	})
	cmd.Flags().StringVar(&id, "id", "", "project ID in place of the exported one")
	return cmd
}

func readTransfer(a *app.App, file string) (t transfer, err error) {
	content, err := a.Read(file, 16<<20) // bytes, as many as of an import of domains
	if err != nil {
		return t, err
	}
	d := json.NewDecoder(bytes.NewReader(content))
	d.DisallowUnknownFields()
	if err := d.Decode(&t); err != nil {
		return t, app.Usagef(`%s is not an output of "svc project export": %v`, file, err)
	}
	if t.Format != transferFormat {
		return t, app.Usagef("this version cannot read format %d", t.Format)
	}
	for _, domain := range slices.Concat(t.Burner.Disposable, t.Burner.Allowed) {
		if ascii, err := burner.ASCII(domain); err != nil || ascii != domain {
			return t, app.Usagef("%q is not a domain in lower-case ASCII", domain)
		}
	}
	for _, i := range t.Integrations {
		offer, err := catalog.Find(string(i.Kind), i.Vendor)
		if err != nil {
			return t, err
		}
		for name, value := range i.Settings {
			if _, err := offer.Apply(nil, []string{name + "=" + value}); err != nil {
				return t, err
			}
		}
	}
	return t, nil
}
