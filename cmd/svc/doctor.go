package main

import (
	"bytes"
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

	"svcapi/shared/project"
	"svcapi/shared/secret"
)

// severity is how bad a finding is.
type severity string

const (
	fine   severity = "ok"
	warns  severity = "warning"
	broken severity = "broken"
)

// diagnosed is one thing that doctor looked at.
type diagnosed struct {
	Severity severity `json:"severity"`
	Check    string   `json:"check"`
	Subject  string   `json:"subject"`
	Detail   string   `json:"detail"`
	// Advice is what to do; empty where all is well.
	Advice string `json:"advice"`
}

// diagnosis is one run of doctor.
type diagnosis struct {
	*stack
	local bool
	only  string // the one project to look at; empty: all
	probe bool
	// pause is the time between the probe's attempts.
	pause time.Duration
	now   func() time.Time
	found []diagnosed
	// What cannot be reached is not looked into.
	noTables, noVault bool
}

func (d *diagnosis) add(s severity, check, subject, detail, advice string) {
	d.found = append(d.found, diagnosed{s, check, subject, detail, advice})
}

// fail notes an error of AWS: what was asked for and what a person can do.
func (d *diagnosis) fail(check, subject string, err error) {
	advice := ""
	if answered, ok := errors.AsType[smithy.APIError](err); ok {
		advice = hintByCode[answered.ErrorCode()]
	}
	if advice == "" {
		_, advice = explain(err)
	}
	d.add(broken, check, subject, err.Error(), advice)
}

// checks in the order in which they are made. Later ones need what earlier ones found in order.
var checks = []func(*diagnosis, context.Context){
	(*diagnosis).identity, (*diagnosis).tables, (*diagnosis).vaultAccess, (*diagnosis).gateway, (*diagnosis).managedSecrets, (*diagnosis).exchangeRates, (*diagnosis).everyProject,
}

func (d *diagnosis) identity(ctx context.Context) {
	who, err := d.actor(ctx)
	if err != nil {
		d.fail("identity", "", err)
		return
	}
	d.add(fine, "identity", who, "", "")
}

// wantedTables are the stage's tables with their keys.
var wantedTables = []struct{ name, keys string }{
	{"projects", "pk sk"}, {"wallets", "pk"}, {"ledger", "pk sk"}, {"rates", "pk sk"}, {"transient", "pk"},
}

// The differences between this machine's clock and AWS's that are said, and that break signatures.
const (
	skewSaid   = 30 * time.Second
	skewBreaks = 4 * time.Minute
)

func (d *diagnosis) tables(ctx context.Context) {
	skewKnown := false
	missing := 0
	for _, want := range wantedTables {
		name := d.table(want.name)
		out, err := d.db.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &name})
		if absent := (*types.ResourceNotFoundException)(nil); errors.As(err, &absent) {
			missing++
			d.add(broken, "table", name, "there is no such table", "Deploy the stack again; a table that was deleted is restored from its backup: docs/restore.md.")
			continue
		}
		if err != nil {
			d.fail("table", name, err)
			d.noTables = true
			if _, answered := errors.AsType[smithy.APIError](err); !answered {
				return // the others would not be reached either
			}
			continue
		}
		if at, known := awsmiddleware.GetServerTime(out.ResultMetadata); known && !skewKnown {
			skewKnown = true
			d.clock(d.now().Sub(at))
		}
		d.judgeTable(ctx, want.name, want.keys, out.Table)
	}
	if missing > 0 {
		d.noTables = true
	}
	if missing == len(wantedTables) {
		d.otherStages(ctx)
	}
}

func (d *diagnosis) clock(skew time.Duration) {
	detail := fmt.Sprintf("this machine is %s off", skew.Abs().Round(time.Second))
	switch {
	case skew.Abs() >= skewBreaks:
		d.add(broken, "clock", "", detail, "Set the clock (NTP): AWS refuses signatures that are five minutes off.")
	case skew.Abs() >= skewSaid:
		d.add(warns, "clock", "", detail, "Set the clock (NTP).")
	default:
		d.add(fine, "clock", "", "", "")
	}
}

func (d *diagnosis) judgeTable(ctx context.Context, short, keys string, table *types.TableDescription) {
	name := aws.ToString(table.TableName)
	var got []string
	for _, k := range table.KeySchema {
		got = append(got, aws.ToString(k.AttributeName))
	}
	switch {
	case strings.Join(got, " ") != keys:
		d.add(broken, "table", name, "its keys are "+strings.Join(got, " ")+", not "+keys, "It is not a table of this product. Deploy under another stage.")
		return
	case table.TableStatus != types.TableStatusActive:
		d.add(warns, "table", name, "it is "+string(table.TableStatus), "Wait until it is ACTIVE.")
		return
	case short == "ledger" && !slices.ContainsFunc(table.GlobalSecondaryIndexes, func(i types.GlobalSecondaryIndexDescription) bool {
		return aws.ToString(i.IndexName) == "uncertain"
	}):
		d.add(broken, "table", name, `it lacks its index "uncertain"`, "A restored table needs it: docs/restore.md.")
		return
	}
	if short == "transient" {
		out, err := d.db.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: &name})
		if err != nil {
			d.fail("table", name, err)
			return
		}
		if ttl := out.TimeToLiveDescription; ttl == nil || aws.ToString(ttl.AttributeName) != "expires" {
			d.add(warns, "table", name, "nothing in it expires", `Switch time to live on, with the attribute "expires": aws dynamodb update-time-to-live.`)
			return
		}
	}
	if kept := short == "projects" || short == "wallets" || short == "ledger"; kept && !d.local {
		if !aws.ToBool(table.DeletionProtectionEnabled) {
			d.add(warns, "table", name, "it can be deleted", "Switch its deletion protection on: docs/restore.md.")
			return
		}
		out, err := d.db.DescribeContinuousBackups(ctx, &dynamodb.DescribeContinuousBackupsInput{TableName: &name})
		if err != nil {
			d.fail("table", name, err)
			return
		}
		if b := out.ContinuousBackupsDescription; b == nil || b.PointInTimeRecoveryDescription == nil || b.PointInTimeRecoveryDescription.PointInTimeRecoveryStatus != types.PointInTimeRecoveryStatusEnabled {
			d.add(warns, "table", name, "it has no point-in-time recovery", "Switch it on: docs/restore.md.")
			return
		}
	}
	d.add(fine, "table", name, "", "")
}

// otherStages says which stages there are where the one that was asked for is not.
func (d *diagnosis) otherStages(ctx context.Context) {
	var stages []string
	pages := dynamodb.NewListTablesPaginator(d.db, &dynamodb.ListTablesInput{})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return // the missing tables are said already
		}
		for _, name := range page.TableNames {
			if stage, ok := strings.CutSuffix(strings.TrimPrefix(name, "svc-"), "-projects"); ok && strings.HasPrefix(name, "svc-") {
				stages = append(stages, stage)
			}
		}
	}
	detail := "there is no stage " + d.stage + " here, nor any other"
	if len(stages) > 0 {
		detail = "there is no stage " + d.stage + " here; there are " + strings.Join(stages, ", ")
	}
	d.add(broken, "stage", d.stage, detail, "Give --stage and --region of a deployed stack.")
}

func (d *diagnosis) vaultAccess(ctx context.Context) {
	name := secret.Name(d.stage, project.SMS, secret.Managed, project.Production)
	_, err := d.vault.GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: &name})
	if answered, ok := errors.AsType[smithy.APIError](err); err != nil && (!ok || answered.ErrorCode() != "ResourceNotFoundException" && answered.ErrorCode() != "InvalidRequestException") {
		d.fail("secrets", "Secrets Manager", err)
		d.noVault = true
		return
	}
	d.add(fine, "secrets", "Secrets Manager", "", "")
}

// gatewayPatience is what the API is given to answer, a cold start included.
const gatewayPatience = 30 * time.Second

// answered is what the API said.
type answered struct {
	status int
	Error  struct{ Code string }
}

func (d *diagnosis) ask(ctx context.Context, url string, header map[string]string) (answered, error) {
	ctx, cancel := context.WithTimeout(ctx, gatewayPatience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader([]byte("{}")))
	if err != nil {
		return answered{}, err
	}
	for name, value := range header {
		r.Header.Set(name, value)
	}
	out, err := (&http.Client{}).Do(r) // the stack itself, no vendor
	if err != nil {
		return answered{}, err
	}
	defer func() { _ = out.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(out.Body, 1<<20))
	if err != nil {
		return answered{}, err
	}
	a := answered{status: out.StatusCode}
	if json.Unmarshal(body, &a) != nil || out.Header.Get("X-SVC-Request-ID") == "" {
		return a, fmt.Errorf("HTTP %d, which is no answer of the product", out.StatusCode)
	}
	return a, nil
}

// balancePath is an operation that costs nothing.
const balancePath = "/sms/balance"

// gateway asks without credentials: gateway, function and its reading of projects have to work for a 401.
func (d *diagnosis) gateway(ctx context.Context) {
	known, err := d.deployed(ctx)
	if err != nil {
		d.fail("stack", "svc-"+d.stage, err)
		return
	}
	if known.baseURL == "" {
		d.add(broken, "stack", "svc-"+d.stage, "the stack does not name its base URL", "Is it a stack of this product? --stack names another.")
		return
	}
	key := map[string]string{"X-API-KEY": "svc_doctor_aaaaaaaa", "X-API-SECRET": "svcs_none"}
	a, err := d.ask(ctx, known.baseURL+balancePath, key)
	switch {
	case err != nil:
		d.add(broken, "gateway", known.baseURL, err.Error(), "Is the stack deployed, and the base URL its own? A web ACL or the DNS may stand before it.")
	case a.status != http.StatusUnauthorized:
		d.add(broken, "gateway", known.baseURL, fmt.Sprintf("HTTP %d %s without credentials, not 401", a.status, a.Error.Code), "The SMS function fails: its log group says why.")
	default:
		d.add(fine, "gateway", known.baseURL, "", "")
	}
	if d.probe && err == nil {
		d.probed(ctx, known.baseURL)
	}
}

const (
	// probePause is longer than the second for which a function refuses a new credential by a record it has just read.
	probePause = 1500 * time.Millisecond
	// probeAttempts last longer than functions keep a record, ten seconds.
	probeAttempts = 8
)

// askNew asks with a new credential, again while a function may not know it yet.
func (d *diagnosis) askNew(ctx context.Context, url string, header map[string]string) (a answered, err error) {
	for attempt := 1; ; attempt++ {
		a, err = d.ask(ctx, url, header)
		if err != nil || a.status != http.StatusUnauthorized || attempt == probeAttempts {
			return a, err
		}
		select {
		case <-ctx.Done():
			return a, ctx.Err()
		case <-time.After(d.pause):
		}
	}
}

// probed asks with a credential that it makes and ends.
func (d *diagnosis) probed(ctx context.Context, baseURL string) {
	clientID, clientSecret, err := d.projects.IssueCredential(ctx, d.only, project.Development)
	if err != nil {
		d.fail("probe", d.only, err)
		return
	}
	a, err := d.askNew(ctx, baseURL+balancePath, map[string]string{"X-API-KEY": clientID, "X-API-SECRET": clientSecret})
	if ended := d.projects.RevokeCredential(context.WithoutCancel(ctx), clientID); ended != nil {
		d.fail("probe", clientID, ended)
	}
	switch {
	case err != nil:
		d.add(broken, "probe", d.only, err.Error(), "")
	case a.status == http.StatusUnauthorized || a.status == http.StatusInternalServerError:
		d.add(broken, "probe", d.only, fmt.Sprintf("HTTP %d %s with a good credential", a.status, a.Error.Code), "Do functions and svc work on the same stage? The SMS function's log group says more.")
	default:
		d.add(fine, "probe", d.only, fmt.Sprintf("HTTP %d %s", a.status, a.Error.Code), "")
	}
}

// managedSecrets looks at the service's own accounts.
func (d *diagnosis) managedSecrets(ctx context.Context) {
	if d.noVault {
		return
	}
	for _, kind := range project.Kinds() {
		for _, env := range project.Environments() {
			d.judgeSecret(ctx, kind, secret.Managed, env)
		}
	}
}

func (d *diagnosis) judgeSecret(ctx context.Context, kind project.Kind, owner string, env project.Environment) {
	name := secret.Name(d.stage, kind, owner, env)
	gone, err := d.secrets.Deleted(ctx, kind, owner, env)
	switch {
	case err != nil:
		d.fail("secret", name, err)
	case gone:
		d.add(broken, "secret", name, "it is scheduled for deletion: no function can read it", `"svc vendor account" or "svc integration set --ask" restores it.`)
	}
}

// ratesStale is the age of exchange rates at which their hourly fetch has failed for long.
const ratesStale = 6 * time.Hour

func (d *diagnosis) exchangeRates(ctx context.Context) {
	if d.noTables || d.only != "" {
		return
	}
	current, err := d.rates.Current(ctx)
	switch {
	case err != nil:
		d.fail("rates", "", err)
	case current == nil:
		d.add(warns, "rates", "", "no exchange rates are held: currency operations answer 422", `"svc rates sync" fetches them.`)
	case d.now().Sub(current.Fetched) > ratesStale:
		d.add(broken, "rates", current.Source, fmt.Sprintf("the exchange rates in use were fetched %s ago", d.now().Sub(current.Fetched).Round(time.Minute)), `"svc rates show" tells what is wrong with each source.`)
	default:
		d.add(fine, "rates", current.Source, "", "")
	}
}

func (d *diagnosis) everyProject(ctx context.Context) {
	if d.noTables || d.noVault {
		return
	}
	ids := []string{d.only}
	if d.only == "" {
		projects, err := d.projects.ListProjects(ctx)
		if err != nil {
			d.fail("projects", "", err)
			return
		}
		ids = nil
		for _, p := range projects {
			ids = append(ids, p.ID)
		}
		if len(ids) == 0 {
			d.add(warns, "projects", "", "there are none", `Make one: "svc project create".`)
		}
	}
	for _, id := range ids {
		before := len(d.found)
		if err := d.project(ctx, id); err != nil {
			d.fail("project", id, err)
		}
		if len(d.found) == before {
			d.add(fine, "project", id, "", "")
		}
	}
}

const (
	rotationEnds = 7 * 24 * time.Hour // after which an open rotation was forgotten
	stuckAfter   = 30 * time.Minute   // after which nothing is in flight any more
)

func (d *diagnosis) project(ctx context.Context, id string) error {
	rec, err := d.load(ctx, id)
	if err != nil {
		return err
	}
	if !project.ValidID(id) {
		d.add(broken, "reserved", id, "its ID is a reserved word: its credentials get 401 unauthorized", "docs/upgrade.md says how its client moves to another ID.")
	}
	if rec.Paused {
		d.add(warns, "paused", id, "every request gets 503 project_paused", `"svc project resume `+id+`" lets it go on.`)
	}
	if rec.Trial && len(rec.TrialDestinations) == 0 {
		d.add(warns, "trial", id, "it is on trial, and no destination is allowed", `"svc project trial `+id+` on --allow NUMBER".`)
	}
	for _, env := range project.Environments() {
		if err := d.environment(ctx, rec, env); err != nil {
			return err
		}
	}
	for _, c := range rec.Credentials {
		if len(c.Secrets) > 1 && d.now().Sub(c.Secrets[len(c.Secrets)-1].Created) > rotationEnds {
			d.add(warns, "rotation", c.ClientID, "its older secret still works, a week after the newer one", `"svc credential rotate `+c.ClientID+` --finish" ends it.`)
		}
	}
	return d.money(ctx, rec)
}

func (d *diagnosis) environment(ctx context.Context, rec *project.Record, env project.Environment) error {
	subject := rec.ID + " " + string(env)
	credentials := slices.ContainsFunc(rec.Credentials, func(c project.Credential) bool { return c.Environment == env && c.Active && len(c.Secrets) > 0 })
	active := 0
	owners := map[string]bool{}
	for _, i := range rec.Integrations {
		if i.Environment != env || !i.Active {
			continue
		}
		active++
		if i.Mode == project.BYOK && !owners[string(i.Kind)] {
			owners[string(i.Kind)] = true
			d.judgeSecret(ctx, i.Kind, rec.ID, env)
		}
		view, err := d.viewIntegration(ctx, rec.ID, i)
		if err != nil {
			d.fail("integration", rec.ID+" "+i.ID, err)
		} else if view.Incomplete != "" {
			advice := `"svc integration set --ask" completes it.`
			if i.Mode == project.Managed {
				advice = `"svc vendor account" sets what Managed integrations share, "svc integration set" the settings.`
			}
			d.add(broken, "integration", rec.ID+" "+i.ID, view.Incomplete, advice)
		}
	}
	switch {
	case active > 0 && !credentials:
		d.add(broken, "credential", subject, "it has integrations and nobody can sign in", `"svc credential issue".`)
	case credentials && active == 0:
		d.add(broken, "integrations", subject, "it has credentials and no active integration", `"svc integration set", or "enable".`)
	case active == 0 && env == project.Development && len(rec.Integrations) == 0 && len(rec.Credentials) == 0:
		d.add(warns, "integrations", rec.ID, "it has neither credentials nor integrations", `"svc credential issue", "svc integration set".`)
	}
	return nil
}

func (d *diagnosis) money(ctx context.Context, rec *project.Record) error {
	pays := slices.ContainsFunc(rec.Integrations, func(i project.Integration) bool {
		return i.Active && i.Mode == project.Managed && i.Kind != project.Currency
	})
	wallet, err := d.credits.Wallet(ctx, rec.ID)
	if err != nil {
		return err
	}
	grant := `"svc credit grant ` + rec.ID + ` CREDITS".`
	switch {
	case wallet == nil && pays:
		d.add(broken, "wallet", rec.ID, "it has Managed integrations and no wallet", grant)
	case wallet == nil:
	case wallet.Balance < 0:
		d.add(broken, "wallet", rec.ID, "its balance is below 0", `Never to happen: "svc ledger verify".`)
	case wallet.Balance == 0 && pays:
		d.add(broken, "wallet", rec.ID, "it has Managed integrations and no credits", grant)
	case wallet.Balance < wallet.Alert:
		d.add(warns, "wallet", rec.ID, grouped(wallet.Balance)+" credits, below its alert of "+grouped(wallet.Alert), grant)
	}
	if wallet != nil && !wallet.Oldest.IsZero() && d.now().Sub(wallet.Oldest) > stuckAfter {
		d.add(broken, "settler", rec.ID, grouped(wallet.Reserved)+" credits are reserved by requests that ended long ago", "The settling function does not run: docs/runbook.md, Settle silent.")
	}
	uncertain, err := d.credits.Uncertain(ctx, rec.ID)
	if err != nil {
		return err
	}
	if len(uncertain) > 0 {
		d.add(warns, "uncertain", rec.ID, fmt.Sprintf("%d SMS were charged, and whether they were sent is not known", len(uncertain)), `"svc sms uncertain list `+rec.ID+`".`)
	}
	return nil
}

func (a *app) doctor() *cobra.Command {
	var projectID string
	var probe, all bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check a stage end to end and say what is wrong",
		Long: `Check a stage end to end and say what is wrong, and what to do: sign-in, clock,
tables, secrets, the API itself, and each project's credentials, integrations
and credits. It changes nothing; with --probe it makes a request with a
credential that it issues and revokes.

Exit code 1: something is broken. Warnings alone are 0.`,
		Example: `  svc doctor --stage prod
  svc doctor --local --project acme --probe`,
		Args: cobra.NoArgs,
		RunE: a.on(func(ctx context.Context, s *stack, _ []string) error {
			if probe && projectID == "" {
				return &usageError{"--probe goes with --project"}
			}
			d := &diagnosis{stack: s, local: a.local, only: projectID, probe: probe, pause: probePause, now: time.Now}
			step := a.progress("checking", len(checks))
			for _, check := range checks {
				check(d, ctx)
				if err := ctx.Err(); err != nil {
					return err
				}
				step()
			}
			return a.printDiagnosis(d.found, all)
		}),
	}
	cmd.Flags().StringVar(&projectID, "project", "", "look at this project alone")
	cmd.Flags().BoolVar(&probe, "probe", false, "make a request, too")
	cmd.Flags().BoolVar(&all, "all", false, "show what is in order, too")
	return cmd
}

func (a *app) printDiagnosis(found []diagnosed, all bool) error {
	count := map[severity]int{}
	shown := []diagnosed{}
	t := table{header: []string{"", "CHECK", "SUBJECT", "DETAIL", "ADVICE"}, empty: "All is in order."}
	for _, f := range found {
		count[f.Severity]++
		if f.Severity == fine && !all {
			continue
		}
		shown = append(shown, f)
		t.rows = append(t.rows, []string{string(f.Severity), f.Check, f.Subject, f.Detail, f.Advice})
	}
	if err := a.print(shown, t); err != nil {
		return err
	}
	a.note("%d in order, %d warnings, %d broken.", count[fine], count[warns], count[broken])
	if count[broken] > 0 {
		return &problemsError{count[broken]}
	}
	return nil
}
