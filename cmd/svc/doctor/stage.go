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

	"svcapi/shared/project"
	"svcapi/shared/secret"
)

// wantedTables are the stage's tables with their keys.
var wantedTables = []struct{ name, keys string }{
	{"projects", "pk sk"}, {"wallets", "pk"}, {"ledger", "pk sk"}, {"rates", "pk sk"}, {"transient", "pk"},
}

// The differences between this machine's clock and AWS's that are said, and that break signatures.
const (
	skewSaid   = 30 * time.Second
	skewBreaks = 4 * time.Minute
)

func (d *Diagnosis) tables(ctx context.Context) {
	skewKnown := false
	missing := 0
	for _, want := range wantedTables {
		name := d.Table(want.name)
		out, err := d.DB.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &name})
		if absent := (*types.ResourceNotFoundException)(nil); errors.As(err, &absent) {
			missing++
			d.add(Broken, "table", name, "there is no such table", "Deploy the stack again; a table that was deleted is restored from its backup: docs/restore.md.")
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
			d.clock(d.Now().Sub(at))
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

func (d *Diagnosis) clock(skew time.Duration) {
	detail := fmt.Sprintf("this machine is %s off", skew.Abs().Round(time.Second))
	switch {
	case skew.Abs() >= skewBreaks:
		d.add(Broken, "clock", "", detail, "Set the clock (NTP): AWS refuses signatures that are five minutes off.")
	case skew.Abs() >= skewSaid:
		d.add(Warns, "clock", "", detail, "Set the clock (NTP).")
	default:
		d.add(Fine, "clock", "", "", "")
	}
}

func (d *Diagnosis) judgeTable(ctx context.Context, short, keys string, table *types.TableDescription) {
	name := aws.ToString(table.TableName)
	var got []string
	for _, k := range table.KeySchema {
		got = append(got, aws.ToString(k.AttributeName))
	}
	switch {
	case strings.Join(got, " ") != keys:
		d.add(Broken, "table", name, "its keys are "+strings.Join(got, " ")+", not "+keys, "It is not a table of this product. Deploy under another stage.")
		return
	case table.TableStatus != types.TableStatusActive:
		d.add(Warns, "table", name, "it is "+string(table.TableStatus), "Wait until it is ACTIVE.")
		return
	case short == "ledger" && !slices.ContainsFunc(table.GlobalSecondaryIndexes, func(i types.GlobalSecondaryIndexDescription) bool {
		return aws.ToString(i.IndexName) == "uncertain"
	}):
		d.add(Broken, "table", name, `it lacks its index "uncertain"`, "A restored table needs it: docs/restore.md.")
		return
	}
	if short == "transient" {
		out, err := d.DB.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: &name})
		if err != nil {
			d.fail("table", name, err)
			return
		}
		if ttl := out.TimeToLiveDescription; ttl == nil || aws.ToString(ttl.AttributeName) != "expires" {
			d.add(Warns, "table", name, "nothing in it expires", `Switch time to live on, with the attribute "expires": aws dynamodb update-time-to-live.`)
			return
		}
	}
	if kept := short == "projects" || short == "wallets" || short == "ledger"; kept && !d.local {
		if !aws.ToBool(table.DeletionProtectionEnabled) {
			d.add(Warns, "table", name, "it can be deleted", "Switch its deletion protection on: docs/restore.md.")
			return
		}
		out, err := d.DB.DescribeContinuousBackups(ctx, &dynamodb.DescribeContinuousBackupsInput{TableName: &name})
		if err != nil {
			d.fail("table", name, err)
			return
		}
		if b := out.ContinuousBackupsDescription; b == nil || b.PointInTimeRecoveryDescription == nil || b.PointInTimeRecoveryDescription.PointInTimeRecoveryStatus != types.PointInTimeRecoveryStatusEnabled {
			d.add(Warns, "table", name, "it has no point-in-time recovery", "Switch it on: docs/restore.md.")
			return
		}
	}
	d.add(Fine, "table", name, "", "")
}

// otherStages says which stages there are where the one that was asked for is not.
func (d *Diagnosis) otherStages(ctx context.Context) {
	var stages []string
	pages := dynamodb.NewListTablesPaginator(d.DB, &dynamodb.ListTablesInput{})
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
	detail := "there is no stage " + d.Stage + " here, nor any other"
	if len(stages) > 0 {
		detail = "there is no stage " + d.Stage + " here; there are " + strings.Join(stages, ", ")
	}
	d.add(Broken, "stage", d.Stage, detail, "Give --stage and --region of a deployed stack.")
}

func (d *Diagnosis) vaultAccess(ctx context.Context) {
	name := secret.Name(d.Stage, project.SMS, secret.Managed, project.Production)
	_, err := d.Vault.GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: &name})
	if answered, ok := errors.AsType[smithy.APIError](err); err != nil && (!ok || answered.ErrorCode() != "ResourceNotFoundException" && answered.ErrorCode() != "InvalidRequestException") {
		d.fail("secrets", "Secrets Manager", err)
		d.noVault = true
		return
	}
	d.add(Fine, "secrets", "Secrets Manager", "", "")
}

// managedSecrets looks at the service's own accounts.
func (d *Diagnosis) managedSecrets(ctx context.Context) {
	if d.noVault {
		return
	}
	for _, kind := range project.Kinds() {
		for _, env := range project.Environments() {
			d.judgeSecret(ctx, kind, secret.Managed, env)
		}
	}
}

func (d *Diagnosis) judgeSecret(ctx context.Context, kind project.Kind, owner string, env project.Environment) {
	name := secret.Name(d.Stage, kind, owner, env)
	gone, err := d.Secrets.Deleted(ctx, kind, owner, env)
	switch {
	case err != nil:
		d.fail("secret", name, err)
	case gone:
		d.add(Broken, "secret", name, "it is scheduled for deletion: no function can read it", `"svc vendor account" or "svc integration set --ask" restores it.`)
	}
}

// ratesStale is the age of exchange rates at which their hourly fetch has failed for long.
const ratesStale = 6 * time.Hour

func (d *Diagnosis) exchangeRates(ctx context.Context) {
	if d.noTables || d.Only != "" {
		return
	}
	current, err := d.Rates.Current(ctx)
	switch {
	case err != nil:
		d.fail("rates", "", err)
	case current == nil:
		d.add(Warns, "rates", "", "no exchange rates are held: currency operations answer 422", `"svc rates sync" fetches them.`)
	case d.Now().Sub(current.Fetched) > ratesStale:
		d.add(Broken, "rates", current.Source, fmt.Sprintf("the exchange rates in use were fetched %s ago", d.Now().Sub(current.Fetched).Round(time.Minute)), `"svc rates show" tells what is wrong with each source.`)
	default:
		d.add(Fine, "rates", current.Source, "", "")
	}
}
