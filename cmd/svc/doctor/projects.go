package doctor

import (
	"context"
	"fmt"
	"slices"
	"time"

	"svcapi/cmd/svc/catalog"
	"svcapi/shared/credit"
	"svcapi/shared/project"
)

func (d *Diagnosis) projects(ctx context.Context) {
	if d.noTables || d.noVault {
		return
	}
	ids := []string{d.Only}
	if d.Only == "" {
		projects, err := d.Projects.ListProjects(ctx)
		if err != nil {
			d.fail("projects", "", err)
			return
		}
		ids = nil
		for _, p := range projects {
			ids = append(ids, p.ID)
		}
		if len(ids) == 0 {
			d.add(Warning, "projects", "", "there are no projects", `"svc project create" creates one.`)
		}
	}
	for _, id := range ids {
		before := len(d.Found)
		if err := d.project(ctx, id); err != nil {
			d.fail("project", id, err)
		}
		if len(d.Found) == before {
			d.add(OK, "project", id, "", "")
		}
	}
}

const (
	maxRotation = 7 * 24 * time.Hour // a longer rotation was probably forgotten
	maxPending  = 30 * time.Minute   // a reservation of a live request is younger
)

func (d *Diagnosis) project(ctx context.Context, id string) error {
	rec, err := d.Load(ctx, id)
	if err != nil {
		return err
	}
	if !project.ValidID(id) {
		d.add(Broken, "reserved", id, "its ID is a reserved word: its credentials get 401 unauthorized", "docs/upgrade.md says how its client moves to another ID.")
	}
	if rec.Paused {
		d.add(Warning, "paused", id, "every request gets 503 project_paused", `"svc project resume `+id+`" ends the pause.`)
	}
	if rec.Trial && len(rec.TrialDestinations) == 0 {
		d.add(Warning, "trial", id, "it is on trial, and no destination is allowed", `"svc project trial `+id+` on --allow NUMBER".`)
	}
	for _, env := range project.Environments() {
		if err := d.environment(ctx, rec, env); err != nil {
			return err
		}
	}
	for _, c := range rec.Credentials {
		if len(c.Secrets) > 1 && d.Now().Sub(c.Secrets[len(c.Secrets)-1].Created) > maxRotation {
			d.add(Warning, "rotation", c.ClientID, "its older secret still works, a week after the newer one", `"svc credential rotate `+c.ClientID+` --finish" ends it.`)
		}
	}
	return d.money(ctx, rec)
}

func (d *Diagnosis) environment(ctx context.Context, rec *project.Record, env project.Environment) error {
	subject := rec.ID + " " + string(env)
	credentials := slices.ContainsFunc(rec.Credentials, func(c project.Credential) bool { return c.Environment == env && c.Active && len(c.Secrets) > 0 })
	active := 0
	checked := map[project.Kind]bool{}
	for _, i := range rec.Integrations {
		if i.Environment != env || !i.Active {
			continue
		}
		active++
		if i.Mode == project.BYOK && !checked[i.Kind] {
			checked[i.Kind] = true
			d.secret(ctx, i.Kind, rec.ID)
		}
		view, err := catalog.ViewOf(ctx, d.Stack, rec.ID, i)
		if err != nil {
			d.fail("integration", rec.ID+" "+i.ID, err)
		} else if view.Incomplete != "" {
			advice := `"svc integration set --ask" completes it.`
			if i.Mode == project.Managed {
				advice = `"svc vendor account" sets the account of Managed integrations, "svc integration set" the settings.`
			}
			d.add(Broken, "integration", rec.ID+" "+i.ID, view.Incomplete, advice)
		}
	}
	switch {
	case active > 0 && !credentials:
		d.add(Broken, "credential", subject, "it has integrations and no live credential", `"svc credential issue".`)
	case credentials && active == 0:
		d.add(Broken, "integrations", subject, "it has credentials and no active integration", `"svc integration set", or "enable".`)
	case active == 0 && env == project.Development && len(rec.Integrations) == 0 && len(rec.Credentials) == 0:
		d.add(Warning, "integrations", rec.ID, "it has neither credentials nor integrations", `"svc credential issue", "svc integration set".`)
	}
	return nil
}

func (d *Diagnosis) money(ctx context.Context, rec *project.Record) error {
	pays := slices.ContainsFunc(rec.Integrations, func(i project.Integration) bool {
		return i.Active && i.Mode == project.Managed && i.Kind != project.Currency
	})
	wallet, err := d.Credits.Wallet(ctx, rec.ID)
	if err != nil {
		return err
	}
	grant := `"svc credit grant ` + rec.ID + ` CREDITS".`
	switch {
	case wallet == nil && pays:
		d.add(Broken, "wallet", rec.ID, "it has Managed integrations and no wallet", grant)
	case wallet == nil:
	case wallet.Balance < 0:
		d.add(Broken, "wallet", rec.ID, "its balance is below 0", `This is a bug of the service: run "svc ledger verify".`)
	case wallet.Balance == 0 && pays:
		d.add(Broken, "wallet", rec.ID, "it has Managed integrations and no credits", grant)
	case wallet.Balance < wallet.Alert:
		d.add(Warning, "wallet", rec.ID, credit.Grouped(wallet.Balance)+" credits, below its alert of "+credit.Grouped(wallet.Alert), grant)
	}
	if wallet != nil && !wallet.Oldest.IsZero() && d.Now().Sub(wallet.Oldest) > maxPending {
		d.add(Broken, "settler", rec.ID, credit.Grouped(wallet.Reserved)+" credits are reserved by requests that ended long ago", "The settling function does not run: docs/runbook.md, Settle silent.")
	}
	uncertain, err := d.Credits.Uncertain(ctx, rec.ID)
	if err != nil {
		return err
	}
	if len(uncertain) > 0 {
		d.add(Warning, "uncertain", rec.ID, fmt.Sprintf("%d SMS were charged with an unknown outcome", len(uncertain)), `"svc sms uncertain list `+rec.ID+`".`)
	}
	return nil
}
