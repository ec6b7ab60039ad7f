package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"svcapi/cmd/svc/app"
	"svcapi/cmd/svc/catalog"
	"svcapi/shared/project"
	"svcapi/shared/project/admin"
	"svcapi/shared/upstream"
)

func (d *diagnosis) projects(ctx context.Context) {
	if d.noTables || d.noVault {
		return
	}
	d.rights = map[string]bool{}
	stack, err := d.StageLimits(ctx)
	if err != nil {
		stack = &app.CloudStack{} // the check of the stage reports it
	}
	d.limits = stack
	projects, err := d.ListProjects(ctx, d.Only)
	if d.Failed("projects", d.Only, err) {
		return
	}
	d.AddIf(len(projects) == 0, app.Warning, "projects", "", "there are no projects", d.Line("project create Acme"))
	for _, p := range projects {
		before := len(d.Found)
		d.Failed("project", p.ID, d.project(ctx, p.ID))
		d.AddIf(len(d.Found) == before, app.OK, "project", p.ID, "", "")
	}
}

func (d *diagnosis) project(ctx context.Context, id string) error {
	rec, err := d.Load(ctx, id)
	if err != nil {
		return err
	}
	d.AddIf(!project.ValidID(id), app.Broken, "reserved", id,
		"its ID is a reserved word: its credentials get 401 unauthorized",
		"Move its client: svc project export, then svc project import FILE --id ID.")
	if !rec.Closed.IsZero() {
		balance, err := d.Credits.Balance(ctx, id)
		d.AddIf(balance > 0, app.Warning, "closed", id, "it is closed, and has "+app.Credits(balance),
			d.Line("project close %s", id))
		return err
	}
	above := d.limits.AboveStage(rec.Limit)
	d.AddIf(above != "", app.Warning, "limits", id, above,
		"Raise the stage's limit (docs/limits-and-429.md), or lower the project's: "+
			d.Line("project limits %s --requests N", id))
	d.AddIf(rec.Paused, app.Warning, "paused", id, "every request gets 503 project_paused",
		d.Line("project resume %s", id))
	d.AddIf(rec.Trial && len(rec.TrialDestinations) == 0, app.Warning, "trial", id,
		"it is on trial, and no destination is allowed", d.Line("project trial %s on --allow 0771234567", id))
	for _, env := range admin.Environments() {
		d.environment(ctx, rec, env)
	}
	for _, c := range rec.Credentials {
		long := len(c.Secrets) > 1 && time.Since(c.Secrets[len(c.Secrets)-1].Created) > 7*24*time.Hour
		d.AddIf(long, app.Warning, "rotation", c.ClientID, "its older secret still works, a week after the newer one",
			d.Line("credential rotate %s --finish", c.ClientID))
	}
	return d.money(ctx, rec)
}

func (d *diagnosis) environment(ctx context.Context, rec *project.Record, env project.Environment) {
	subject := rec.ID + " " + string(env)
	credentials := slices.ContainsFunc(rec.Credentials,
		func(c project.Credential) bool { return c.Environment == env && c.Active && len(c.Secrets) > 0 })
	connect := d.Line("integration set %s barcode builtin --env %s --mode managed", rec.ID, env)
	active, checked := 0, map[project.Kind]bool{}
	for _, i := range rec.Integrations {
		switch {
		case i.Environment != env:
			continue
		case !i.Active:
			connect = d.Line("integration enable %s %s %s --env %s", rec.ID, i.Kind, i.Vendor, env)
			continue
		}
		active++
		if i.Mode == project.BYOK && !checked[i.Kind] {
			checked[i.Kind] = true
			d.secret(ctx, i.Kind, rec.ID, d.Line("integration set %s %s %s --env %s --ask", rec.ID, i.Kind, i.Vendor, env))
		}
		view, err := catalog.ViewOf(ctx, d.Stack, rec.ID, i)
		if !d.Failed("integration", rec.ID+" "+i.ID, err) && view.Incomplete != "" {
			d.Add(app.Broken, "integration", rec.ID+" "+i.ID, view.Incomplete, d.completion(ctx, rec.ID, i))
		} else if err == nil {
			d.right(ctx, rec.ID, i)
		}
	}
	switch {
	case active > 0 && !credentials:
		d.Add(app.Broken, "credential", subject, "it has integrations and no live credential",
			d.Line("credential issue %s --env %s", rec.ID, env))
	case credentials && active == 0:
		d.Add(app.Broken, "integrations", subject, "it has credentials and no active integration", connect)
	case active == 0 && env == project.Development && len(rec.Integrations) == 0 && len(rec.Credentials) == 0:
		d.Add(app.Warning, "integrations", rec.ID, "it has neither credentials nor integrations",
			d.Line("credential issue %s", rec.ID))
	}
	if env == project.Production && credentials {
		d.dailyLimits(rec)
	}
}

// dailyLimits reports that a stolen production credential can spend without a limit of a day
// (docs/limits-and-429.md#spending-of-a-day).
func (d *diagnosis) dailyLimits(rec *project.Record) {
	managed := func(i project.Integration) bool { return i.Environment == project.Production && paid(i) }
	byok := func(i project.Integration) bool { return i.Mode == project.BYOK }
	warn := func(spends bool, limit int64, unit, spent, flag string) {
		d.AddIf(spends && limit == 0, app.Warning, "limits", rec.ID+" production",
			"no daily limit of "+unit+": a stolen credential can spend "+spent, d.Line("project limits %s %s", rec.ID, flag))
	}
	warn(slices.ContainsFunc(rec.Integrations, managed), rec.Limits.DailyCredits, "credits",
		"the wallet", app.ProposedCredits)
	warn(slices.ContainsFunc(rec.Active(project.SMS, project.Production), byok), rec.Limits.DailyUnits,
		"SMS units", "the account at the vendor", app.ProposedUnits)
}

// paid reports whether requests through an integration cost credits.
func paid(i project.Integration) bool {
	return i.Active && i.Mode == project.Managed && i.Kind != project.Currency
}

// right checks the right of the function's role that a Managed integration needs, once for each origination identity.
func (d *diagnosis) right(ctx context.Context, id string, i project.Integration) {
	identity := i.Vendor + " " + i.Settings["sender_id"] + " " + i.Settings["region"]
	if i.Mode != project.Managed || d.rights[identity] {
		return
	}
	d.rights[identity] = true
	const guide = "docs/sms.md, AWS End User Messaging."
	lacks, err := catalog.CheckRight(ctx, d.Stack, i)
	if err != nil {
		d.Add(app.Warning, "right", id+" "+i.ID, catalog.NotChecked+err.Error(), guide)
	}
	d.AddIf(lacks != "", app.Broken, "right", id+" "+i.ID, lacks,
		"Deploy with the ARN in SmsOriginationIdentityArns: "+guide)
}

// completion returns the command that completes an integration.
func (d *diagnosis) completion(ctx context.Context, id string, i project.Integration) string {
	vendor := fmt.Sprintf("%s %s", i.Kind, i.Vendor)
	offer, err := catalog.Find(string(i.Kind), i.Vendor)
	if err != nil {
		return d.Line("integration disable %s %s --env %s", id, vendor, i.Environment)
	}
	account, err := catalog.ReadAccount(ctx, d.Stack, offer, upstream.Owner(i.Mode, id), i.Environment)
	if err != nil {
		return app.Hint(err)
	}
	var options []string
	for _, name := range upstream.Missing(offer.Spec.Settings, i.Settings) {
		options = append(options, "--setting "+name+"=VALUE")
	}
	if len(upstream.Missing(offer.Spec.Secrets, account.Stored)) > 0 {
		if i.Mode == project.Managed {
			return d.Line("vendor account %s --env %s", vendor, i.Environment)
		}
		options = append(options, "--ask")
	}
	remove := "--setting " + upstream.EndpointSetting + "=" // the only setting that can be wrong
	return d.Line("integration set %s %s --env %s %s", id, vendor, i.Environment,
		cmp.Or(strings.Join(options, " "), remove))
}

func (d *diagnosis) money(ctx context.Context, rec *project.Record) error {
	pays := slices.ContainsFunc(rec.Integrations, paid)
	wallet, err := d.Credits.Wallet(ctx, rec.ID)
	if err != nil {
		return err
	}
	grant := d.Line("credit grant %s 1000000 --reason top-up", rec.ID)
	switch {
	case wallet == nil && pays:
		d.Add(app.Broken, "wallet", rec.ID, "it has Managed integrations and no wallet", grant)
	case wallet == nil:
	case wallet.Balance < 0:
		d.Add(app.Broken, "wallet", rec.ID, "its balance is below 0, which is a bug of the service", d.Line("ledger verify"))
	case wallet.Balance == 0 && pays:
		d.Add(app.Broken, "wallet", rec.ID, "it has Managed integrations and no credits", grant)
	case wallet.Balance < wallet.Alert:
		d.Add(app.Warning, "wallet", rec.ID,
			app.Credits(wallet.Balance)+", below its alert of "+app.Credits(wallet.Alert), grant)
	}
	if wallet != nil && !wallet.Oldest.IsZero() && time.Since(wallet.Oldest) > 30*time.Minute {
		d.Add(app.Broken, "settler", rec.ID, "requests that ended long ago hold a lease since "+app.Second(wallet.Oldest),
			"The settling function does not run: docs/runbook.md, Settle silent.")
	}
	uncertain, err := d.Credits.Uncertain(ctx, rec.ID)
	d.AddIf(len(uncertain) > 0, app.Warning, "uncertain", rec.ID,
		app.Count(len(uncertain), "SMS was", "SMS were")+" charged with an unknown outcome",
		d.Line("sms uncertain list %s", rec.ID))
	return err
}
