package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/smithy-go"

	"svcapi/cmd/svc/app"
	"svcapi/cmd/svc/catalog"
	"svcapi/cmd/svc/logs"
	"svcapi/shared/project"
	"svcapi/shared/upstream"
)

// tableKeys are the stage's tables with their keys.
var tableKeys = []struct{ name, keys string }{
	{"projects", "pk sk"}, {"wallets", "pk"}, {"ledger", "pk sk"}, {"movements", "pk sk"}, {"resolutions", "pk sk"},
	{"rates", "pk sk"}, {"transient", "pk"},
}

// The clock skews between this machine and AWS that doctor reports as a warning and as broken.
const (
	skewWarning = 30 * time.Second
	skewBroken  = 4 * time.Minute // AWS refuses signatures from five minutes on
)

func (d *Diagnosis) tables(ctx context.Context) {
	skewKnown := false
	missing := 0
	for _, want := range tableKeys {
		name := d.Table(want.name)
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
		severity, detail, advice, err := d.table(ctx, want.name, want.keys, out.Table)
		d.AddIf(!d.Failed("table", name, err), severity, "table", name, detail, advice)
	}
	d.noTables = d.noTables || missing > 0
	if missing == len(tableKeys) {
		d.otherStages(ctx)
	}
}

func (d *Diagnosis) clock(skew time.Duration) {
	detail := fmt.Sprintf("this machine is %s off", skew.Abs().Round(time.Second))
	switch {
	case skew.Abs() >= skewBroken:
		d.Add(app.Broken, "clock", "", detail, "Set the clock (NTP): AWS refuses signatures that are five minutes off.")
	case skew.Abs() >= skewWarning:
		d.Add(app.Warning, "clock", "", detail, "Set the clock (NTP).")
	default:
		d.Add(app.OK, "clock", "", "", "")
	}
}

// table returns severity, detail and advice of the first problem of a table, or OK.
func (d *Diagnosis) table(ctx context.Context, short, keys string,
	table *types.TableDescription) (s app.Severity, detail, advice string, err error) {
	name := d.Table(short)
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
func (d *Diagnosis) otherStages(ctx context.Context) {
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

func (d *Diagnosis) vaultAccess(ctx context.Context) {
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
func (d *Diagnosis) managedSecrets(ctx context.Context) {
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

func (d *Diagnosis) secret(ctx context.Context, kind project.Kind, owner, restore string) {
	name := upstream.SecretName(d.Stage, kind, owner)
	deleted, err := d.Secrets.Deleted(ctx, kind, owner)
	d.Failed("secret", name, err)
	d.AddIf(deleted, app.Broken, "secret", name, "it is scheduled for deletion: no function can read it", restore)
}

// ratesStale is the age from which exchange rates are too old: their hourly fetch has failed several times.
const ratesStale = 6 * time.Hour

func (d *Diagnosis) exchangeRates(ctx context.Context) {
	if d.noTables || d.Only != "" {
		return
	}
	current, err := d.Rates.Current(ctx)
	switch {
	case err != nil:
		d.Failed("rates", "", err)
	case current == nil:
		d.Add(app.Warning, "rates", "", "there are no exchange rates: currency operations return 422", d.Line("rates sync"))
	case time.Since(current.Fetched) > ratesStale:
		d.Add(app.Broken, "rates", current.Source,
			fmt.Sprintf("the exchange rates in use were fetched %s ago",
				time.Since(current.Fetched).Round(time.Minute)), d.Line("rates show"))
	default:
		d.Add(app.OK, "rates", current.Source, "", "")
	}
}

// renderer checks the age of the browser that renders strangers' documents. On the local stack the age is shown only.
func (d *Diagnosis) renderer(ctx context.Context) {
	if d.Only != "" {
		return
	}
	b, err := logs.StartedBrowser(ctx, d.Stack)
	switch {
	case err != nil:
		d.Add(app.Warning, "browser", "", "the age of the browser for PDFs is not known: "+err.Error(),
			"Your identity needs logs:StartQuery and logs:GetQueryResults (docs/operate.md).")
	case b == nil:
		d.Add(app.OK, "browser", "", "no start of the browser for PDFs in the log of the last 30 days", "")
	case b.Old() && !d.Local:
		d.Add(app.Warning, "browser", b.Version, b.Age(), logs.Renew(d.Stack))
	default:
		d.Add(app.OK, "browser", b.Version, b.Age(), "")
	}
}
