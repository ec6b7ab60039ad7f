package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/smithy-go"
	"github.com/spf13/cobra"

	"svcapi/cmd/svc/app"
	"svcapi/cmd/svc/catalog"
	"svcapi/shared/project"
	"svcapi/shared/project/admin"
	"svcapi/shared/upstream"
)

func doctorCommand(a *app.App) *cobra.Command {
	var only string
	var probe, all bool
	cmd := a.Command("doctor", nil, func(ctx context.Context, s *app.Stack) error {
		if probe && only == "" {
			return app.Usagef("--probe needs --project")
		}
		d := &diagnosis{Stack: s, Only: only, probe: probe, Pause: probePause}
		return d.run(ctx, all)
	})
	cmd.Flags().StringVar(&only, "project", "", "check this project alone")
	cmd.Flags().BoolVar(&probe, "probe", false, "also make a request")
	cmd.Flags().BoolVar(&all, "all", false, "also show checks without a problem")
	return cmd
}

func (d *diagnosis) run(ctx context.Context, all bool) error {
	step := d.Progress("checking", len(checks))
	for _, check := range checks {
		check(d, ctx)
		if err := ctx.Err(); err != nil {
			return err
		}
		step()
	}
	intended := d.intended()
	err := d.PrintFindings(d.Found, all)
	if intended > 0 {
		d.Note("%d of those in order are faults that the demo has on purpose; --all shows them.", intended)
	}
	return err
}

// intended takes the advice from findings that the local stack's demo has on purpose, and returns their number.
func (d *diagnosis) intended() (n int) {
	for i := range d.Found {
		f := &d.Found[i]
		id, _, _ := strings.Cut(f.Subject, " ")
		for _, p := range d.Running.Projects {
			if id == p.ID && slices.ContainsFunc(p.Faults, func(fault app.Fault) bool {
				return f.Check == fault.Check && strings.Contains(f.Detail, fault.Detail)
			}) {
				n++
				f.Severity, f.Detail, f.Advice = app.OK, f.Detail+": a fault that the demo has on purpose", ""
			}
		}
	}
	return n
}

// diagnosis is one run of doctor.
type diagnosis struct {
	*app.Stack
	app.Findings
	Only  string // the only project to check; empty for all projects
	probe bool
	// Pause is the time between the probe's attempts.
	Pause             time.Duration
	noTables, noVault bool // later checks skip what cannot be reached

	rights map[string]bool // the origination identities that were checked
	limits *app.CloudStack // the stage's own limits
}

// checks are in the order of their run, because later checks depend on earlier ones.
var checks = []func(*diagnosis, context.Context){
	(*diagnosis).identity, (*diagnosis).tables, (*diagnosis).vaultAccess, (*diagnosis).gateway,
	(*diagnosis).managedSecrets, (*diagnosis).exchangeRates, (*diagnosis).renderer, (*diagnosis).projects,
}

func (d *diagnosis) identity(ctx context.Context) {
	actor, err := d.Actor(ctx)
	d.AddIf(!d.Failed("identity", "", err), app.OK, "identity", actor, "", "")
}

// gatewayResponse holds the fields of an API response that doctor uses.
type gatewayResponse struct {
	status    int
	requestID string
	Error     struct{ Code string }
}

// request asks the API for the balance of SMS, which has no price.
func (d *diagnosis) request(ctx context.Context, baseURL, clientID, clientSecret string) (gatewayResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second) // a cold start included
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, baseURL+"/sms/balance", strings.NewReader("{}"))
	if err != nil {
		return gatewayResponse{}, err
	}
	r.Header.Set("X-API-KEY", clientID)
	r.Header.Set("X-API-SECRET", clientSecret)
	out, err := (&http.Client{}).Do(r) // the stack itself, no vendor
	if err != nil {
		return gatewayResponse{}, err
	}
	defer func() { _ = out.Body.Close() }()
	a := gatewayResponse{status: out.StatusCode, requestID: out.Header.Get("X-SVC-Request-ID")}
	if json.NewDecoder(io.LimitReader(out.Body, 1<<20)).Decode(&a) != nil || a.requestID == "" {
		return a, fmt.Errorf("HTTP %d, which is not a response of the API", out.StatusCode)
	}
	return a, nil
}

// gateway makes a request without valid credentials: a 401 proves that the gateway, the function and the table work.
func (d *diagnosis) gateway(ctx context.Context) {
	baseURL, _, err := d.Deployed(ctx)
	if d.Failed("stack", d.StackName(), err) {
		return
	}
	if baseURL == "" {
		d.Add(app.Broken, "stack", d.StackName(), "the stack does not name its base URL",
			"aws cloudformation describe-stacks --region "+d.AWS.Region+
				" --query 'Stacks[?Outputs[?OutputKey==`BaseUrl`]].StackName'")
		return
	}
	a, err := d.request(ctx, baseURL, "svc_doctor_aaaaaaaa", "svcs_none")
	switch {
	case err != nil:
		d.Add(app.Broken, "gateway", baseURL, err.Error(),
			"Is the stack deployed, and does the base URL belong to it? A web ACL or the DNS may block the request.")
	case a.status != http.StatusUnauthorized:
		d.Add(app.Broken, "gateway", baseURL,
			fmt.Sprintf("HTTP %d %s without credentials, not 401", a.status, a.Error.Code), d.Line("logs %s", a.requestID))
	default:
		d.Add(app.OK, "gateway", baseURL, "", "")
	}
	if d.probe && err == nil {
		d.Probe(ctx, baseURL)
	}
}

const (
	// probePause exceeds the time without a new credential (docs/decisions/requests.md#project-records).
	probePause = 1500 * time.Millisecond
	// probeAttempts last longer than the ten seconds for which functions cache a record.
	probeAttempts = 8
)

// Probe makes a request with a credential that Probe issues and revokes.
func (d *diagnosis) Probe(ctx context.Context, baseURL string) {
	clientID, clientSecret, err := d.Projects.IssueCredential(ctx, d.Only, project.Development)
	if d.Failed("probe", d.Only, err) {
		return
	}
	a, err := d.request(ctx, baseURL, clientID, clientSecret)
	for tries := 1; err == nil && a.status == http.StatusUnauthorized && tries < probeAttempts; tries++ {
		select { // a function may not know the credential yet
		case <-ctx.Done():
		case <-time.After(d.Pause):
		}
		a, err = d.request(ctx, baseURL, clientID, clientSecret)
	}
	d.Failed("probe", clientID, d.Projects.RevokeCredential(context.WithoutCancel(ctx), clientID))
	switch {
	case err != nil:
		d.Add(app.Broken, "probe", d.Only, err.Error(), d.Line("doctor"))
	case a.status == http.StatusUnauthorized || a.status == http.StatusInternalServerError:
		d.Add(app.Broken, "probe", d.Only, fmt.Sprintf("HTTP %d %s with a valid credential", a.status, a.Error.Code),
			d.Line("logs %s", a.requestID))
	default:
		d.Add(app.OK, "probe", d.Only, fmt.Sprintf("HTTP %d %s", a.status, a.Error.Code), "")
	}
}

func (d *diagnosis) tables(ctx context.Context) {
	skewKnown := false
	missing := 0
	tables := append(app.KeptTables(), "rates", "transient")
	for _, short := range tables {
		name := d.Table(short)
		out, err := d.DB.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &name})
		if absent := (*types.ResourceNotFoundException)(nil); errors.As(err, &absent) {
			missing++
			d.Add(app.Broken, "table", name, "the table does not exist",
				"Deploy the stack again, or restore a deleted table from its backup: docs/restore.md.")
			continue
		}
		if err != nil {
			d.Failed("table", name, err)
			d.noTables = true
			if _, responded := errors.AsType[smithy.APIError](err); !responded {
				return // DynamoDB cannot be reached
			}
			continue
		}
		if at, known := awsmiddleware.GetServerTime(out.ResultMetadata); known && !skewKnown {
			skewKnown = true
			d.clock(time.Since(at))
		}
		severity, detail, advice, err := d.table(ctx, short, out.Table)
		d.AddIf(!d.Failed("table", name, err), severity, "table", name, detail, advice)
	}
	d.noTables = d.noTables || missing > 0
	if missing == len(tables) {
		d.otherStages(ctx)
	}
}

func (d *diagnosis) clock(skew time.Duration) {
	detail := fmt.Sprintf("this machine is %s off", skew.Abs().Round(time.Second))
	switch {
	case skew.Abs() >= 4*time.Minute:
		d.Add(app.Broken, "clock", "", detail, "Set the clock (NTP): AWS refuses signatures that are five minutes off.")
	case skew.Abs() >= 30*time.Second:
		d.Add(app.Warning, "clock", "", detail, "Set the clock (NTP).")
	default:
		d.Add(app.OK, "clock", "", "", "")
	}
}

// table returns severity, detail and advice of the first problem of a table, or OK.
func (d *diagnosis) table(ctx context.Context, short string,
	table *types.TableDescription) (s app.Severity, detail, advice string, err error) {
	name, keys := d.Table(short), "pk sk"
	if short == "wallets" || short == "transient" {
		keys = "pk"
	}
	var got []string
	for _, k := range table.KeySchema {
		got = append(got, aws.ToString(k.AttributeName))
	}
	uncertain := func(i types.GlobalSecondaryIndexDescription) bool { return aws.ToString(i.IndexName) == "uncertain" }
	switch {
	case strings.Join(got, " ") != keys:
		return app.Broken, "its keys are " + strings.Join(got, " ") + ", not " + keys,
			"It is not a table of this product. Deploy under another stage.", nil
	case table.TableStatus != types.TableStatusActive:
		return app.Warning, "it is " + string(table.TableStatus), "Wait until it is ACTIVE.", nil
	case short == "ledger" && !slices.ContainsFunc(table.GlobalSecondaryIndexes, uncertain):
		return app.Broken, `it lacks its index "uncertain"`, "A restored table needs it: docs/restore.md.", nil
	case short == "transient":
		out, err := d.DB.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: &name})
		if err == nil && (out.TimeToLiveDescription == nil ||
			aws.ToString(out.TimeToLiveDescription.AttributeName) != "expires") {
			return app.Warning, "nothing in it expires",
				"aws dynamodb update-time-to-live --region " + d.AWS.Region + " --table-name " + name +
					" --time-to-live-specification Enabled=true,AttributeName=expires", nil
		}
		return app.OK, "", "", err
	case short == "rates" || d.Local:
		return app.OK, "", "", nil
	case !aws.ToBool(table.DeletionProtectionEnabled):
		return app.Warning, "it can be deleted", d.Line("protect"), nil
	}
	if on, err := d.HasRecovery(ctx, name); on || err != nil {
		return app.OK, "", "", err
	}
	return app.Warning, "it has no point-in-time recovery", d.Line("protect"), nil
}

// otherStages reports the stages of the account in place of a stage that does not exist.
func (d *diagnosis) otherStages(ctx context.Context) {
	var stages []string
	pages := dynamodb.NewListTablesPaginator(d.DB, &dynamodb.ListTablesInput{})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return // the missing tables are already reported
		}
		for _, name := range page.TableNames {
			if stage, ok := strings.CutSuffix(strings.TrimPrefix(name, "svc-"), "-projects"); ok &&
				strings.HasPrefix(name, "svc-") {
				stages = append(stages, stage)
			}
		}
	}
	detail := "the account and region have no stage"
	if len(stages) > 0 {
		detail = "the account and region have no stage " + d.Stage + ", only " + strings.Join(stages, ", ")
	}
	advice := "Give --stage and --region of a deployed stack."
	if len(stages) > 0 && !d.Local {
		advice = "svc doctor --stage " + stages[0]
	}
	d.Add(app.Broken, "stage", d.Stage, detail, advice)
}

func (d *diagnosis) vaultAccess(ctx context.Context) {
	name := upstream.SecretName(d.Stage, project.SMS, upstream.ManagedOwner)
	_, err := d.Vault.GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: &name})
	if response, ok := errors.AsType[smithy.APIError](err); err != nil &&
		(!ok || response.ErrorCode() != "ResourceNotFoundException" && response.ErrorCode() != "InvalidRequestException") {
		d.noVault = d.Failed("secrets", "Secrets Manager", err)
		return
	}
	d.Add(app.OK, "secrets", "Secrets Manager", "", "")
}

// managedSecrets checks the service's own vendor accounts.
func (d *diagnosis) managedSecrets(ctx context.Context) {
	if d.noVault {
		return
	}
	seen := map[project.Kind]bool{}
	for _, o := range catalog.Offers() {
		if seen[o.Kind] || len(o.Spec.Secrets) == 0 || o.Spec.ManagedAction != "" {
			continue
		}
		seen[o.Kind] = true
		d.secret(ctx, o.Kind, upstream.ManagedOwner, d.Line("vendor account %s %s --env both", o.Kind, o.Spec.Name))
	}
}

func (d *diagnosis) secret(ctx context.Context, kind project.Kind, owner, restore string) {
	name := upstream.SecretName(d.Stage, kind, owner)
	deleted, err := d.Secrets.Deleted(ctx, kind, owner)
	d.Failed("secret", name, err)
	d.AddIf(deleted, app.Broken, "secret", name, "it is scheduled for deletion: no function can read it", restore)
}

func (d *diagnosis) exchangeRates(ctx context.Context) {
	if d.noTables || d.Only != "" {
		return
	}
	current, err := d.Rates.Current(ctx)
	switch {
	case err != nil:
		d.Failed("rates", "", err)
	case current == nil:
		d.Add(app.Warning, "rates", "", "there are no exchange rates: currency operations return 422", d.Line("rates sync"))
	case time.Since(current.Fetched) > 6*time.Hour: // the hourly fetch has failed several times
		age := time.Since(current.Fetched).Round(time.Minute)
		d.Add(app.Broken, "rates", current.Source, fmt.Sprintf("the exchange rates in use were fetched %s ago", age),
			d.Line("rates show"))
	default:
		d.Add(app.OK, "rates", current.Source, "", "")
	}
}

// renderer checks the age of the browser that renders strangers' documents. On the local stack the age is shown only.
func (d *diagnosis) renderer(ctx context.Context) {
	if d.Only != "" {
		return
	}
	b, err := startedBrowser(ctx, d.Stack)
	switch {
	case err != nil:
		d.Add(app.Warning, "browser", "", "the age of the browser for PDFs is not known: "+err.Error(),
			"Your identity needs logs:StartQuery and logs:GetQueryResults (docs/operate.md).")
	case b == nil:
		d.Add(app.OK, "browser", "", "no start of the browser for PDFs in the log of the last 30 days", "")
	case b.Old() && !d.Local:
		d.Add(app.Warning, "browser", b.Version, b.Age(), renewBrowser(d.Stack))
	default:
		d.Add(app.OK, "browser", b.Version, b.Age(), "")
	}
}

func (d *diagnosis) projects(ctx context.Context) {
	if d.noTables || d.noVault {
		return
	}
	d.rights = map[string]bool{}
	var err error
	if d.limits, err = d.DeployedStack(ctx); err != nil {
		d.limits = &app.CloudStack{} // the check of the stage reports it
	}
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
