package app

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"

	"svcapi/shared/books"
	"svcapi/shared/dynamo"
	"svcapi/shared/project/admin"
	"svcapi/shared/rates/refresh"
	"svcapi/shared/secret"
	"svcapi/shared/upstream"
)

// The exit codes.
const (
	ExitFailed      = 1
	ExitUsage       = 2
	ExitNotFound    = 3
	ExitRefused     = 4
	ExitInterrupted = 130
)

// Usagef returns the error of a command line that is not valid.
func Usagef(format string, args ...any) error {
	return Failf(ExitUsage, `"svc help", or --help after any command, shows the usage.`, format, args...)
}

// Failf returns an error with an exit code and a hint of its own.
func Failf(exit int, hint, format string, args ...any) error {
	return &FailureError{fmt.Sprintf(format, args...), exit, hint}
}

// Problems returns an error for a number of problems above 0 that a check has found and printed.
func Problems(n int) error {
	if n == 0 {
		return nil
	}
	return errors.New(Count(n, "problem", "problems"))
}

// FailureError is an error with an exit code and a hint of its own.
type FailureError struct {
	Text string
	Exit int
	Hint string
}

func (e *FailureError) Error() string { return e.Text }

// errNoRegion has the three places of a region: SAM reads AWS_DEFAULT_REGION and no AWS_REGION.
var errNoRegion = &FailureError{"no AWS region", ExitUsage,
	`Give --region, such as --region eu-west-1, set AWS_REGION and for sam AWS_DEFAULT_REGION, ` +
		`or run "aws configure set region eu-west-1".`}

var (
	errSignIn       = &FailureError{"no AWS credentials", ExitFailed, signIn}
	errNoLocalStack = errors.New("no local stack is running here (.local/demo.json is missing)")
	// ErrRefused reports that a command would break a rule of svc.
	ErrRefused = errors.New("refused")
)

// adviceByError lists the errors of the product with their exit codes and hints; the first match counts.
var adviceByError = []struct {
	is   error
	exit int
	hint string
}{
	{context.Canceled, ExitInterrupted, ""},
	{errNoLocalStack, ExitFailed, "Start it in another terminal with: make run"},
	{admin.ErrNotFound, ExitNotFound, `"svc project list" shows the projects, "svc project show" what is in one.`},
	{admin.ErrExists, ExitRefused, "Choose another ID."},
	{admin.ErrMixedModes, ExitRefused, ""},
	{admin.ErrBusy, ExitRefused, "Run the command again."},
	{admin.ErrRotating, ExitRefused,
		`The client may still use the older secret. Finish it with --finish, or give --replace, which replaces the newer ` +
			`secret.`},
	{admin.ErrClosed, ExitRefused, `"svc project reopen" opens it again, within 30 days of its closing.`},
	{admin.ErrInvalid, ExitUsage, ""},
	{books.ErrOtherMovement, ExitRefused, `Omit --id for a new movement; "svc credit ledger" shows the old one.`},
	{books.ErrOutOfRange, ExitRefused,
		`"svc credit balance" shows the balance, with the credits of open leases. These return within three minutes of ` +
			`"svc project pause".`},
	{books.ErrNoWallet, ExitRefused, `"svc credit grant" creates the wallet.`},
	{books.ErrNotCharged, ExitNotFound, `"svc credit ledger" shows charges with their IDs.`},
	{books.ErrUncertain, ExitRefused, `Ask the vendor whether it was sent, then "svc sms uncertain resolve".`},
	{books.ErrNotUncertain, ExitNotFound, `"svc sms uncertain list" shows those that are open.`},
	{books.ErrResolved, ExitRefused, `A resolution is final; "svc credit ledger" shows it.`},
	{books.ErrUnbalanced, ExitFailed, `"svc ledger verify" lists each difference.`},
	{upstream.ErrIncomplete, ExitRefused,
		`"svc vendor list" shows what a vendor needs, "svc vendor account" sets what Managed ones share; --incomplete ` +
			`stores it as it is.`},
	{refresh.ErrNoRates, ExitFailed, `The rates in use stay. "svc rates show" shows the failure of each source.`},
	{secret.ErrChanged, ExitRefused,
		"Nothing was changed. Run the command again if your values are still the right ones."},
	{ErrRefused, ExitRefused, ""},
	{syscall.ECONNREFUSED, ExitFailed, "The connection was refused. With --local: is the local stack still running?"},
}

const signIn = `Sign in ("aws sso login"), choose --profile, or set the AWS_ variables. "aws sts ` +
	`get-caller-identity" must work.`

// explain returns the exit code of an error and a hint for the operator.
func explain(err error) (exit int, hint string) {
	if failure, ok := errors.AsType[*FailureError](err); ok && !errors.Is(err, context.Canceled) {
		return failure.Exit, failure.Hint
	}
	if hint := hintOfAWS(err); hint != "" {
		return ExitFailed, hint
	}
	for _, a := range adviceByError {
		if errors.Is(err, a.is) {
			return a.exit, a.hint
		}
	}
	return ExitFailed, ""
}

// hintOfAWS returns the hint for an error code of AWS, and "" for none.
func hintOfAWS(err error) string {
	response, ok := errors.AsType[smithy.APIError](err)
	if !ok {
		return ""
	}
	switch response.ErrorCode() {
	case "ResourceNotFoundException":
		return "The tables of the stage do not exist. Are --stage and --region right, and is the stack deployed?"
	case "AccessDenied", "AccessDeniedException":
		return "Your AWS identity lacks a permission that the command needs."
	case "UnrecognizedClientException", "InvalidClientTokenId", "InvalidSignatureException", "ExpiredToken",
		"ExpiredTokenException":
		return signIn
	}
	return ""
}

// Hint returns the hint for an error.
func Hint(err error) string {
	_, hint := explain(err)
	return hint
}

// CertainlyRefused reports whether the error of a movement of credits proves that the movement did not take place.
func CertainlyRefused(err error) bool {
	_, dry := errors.AsType[*dryRunError](err)
	return dry || errors.Is(err, books.ErrOtherMovement) || errors.Is(err, books.ErrOutOfRange) ||
		errors.Is(err, books.ErrNoWallet) || hintOfAWS(err) != ""
}

// Report prints an error and returns the exit code.
func (a *App) Report(err error) int {
	if err == nil {
		return 0
	}
	if dry, ok := errors.AsType[*dryRunError](err); ok {
		return a.Report(a.printDryRun(dry))
	}
	exit, hint := explain(err)
	if exit == ExitInterrupted {
		fmt.Fprintln(a.Errs, "\nsvc: interrupted")
		return exit
	}
	a.Note("svc: %s", strings.TrimSpace(err.Error()))
	if hint != "" {
		a.Note("     %s", hint)
	}
	return exit
}

// dryRunError ends a command with --dry-run at its first write. Everything before that write was validated.
type dryRunError struct{ writes []string }

func (e *dryRunError) Error() string { return "dry run: would " + strings.Join(e.writes, "; ") }

// refuseWrites makes every write of an AWS client fail with a dryRunError.
func refuseWrites(stack *middleware.Stack) error {
	return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("svc:DryRun",
		func(ctx context.Context, in middleware.InitializeInput,
			next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
			if writes := describeWrites(in.Parameters); len(writes) > 0 {
				return middleware.InitializeOutput{}, middleware.Metadata{}, &dryRunError{writes}
			}
			return next.HandleInitialize(ctx, in)
		}), middleware.Before)
}

// describeWrites describes the changes of a call, and returns nothing for a call that reads.
func describeWrites(input any) (writes []string) {
	add := func(verb string, table *string, item dynamo.Item) {
		key := dynamo.TextOf(item["pk"])
		if sort := dynamo.TextOf(item["sk"]); sort != "" {
			key += " / " + sort
		}
		writes = append(writes, fmt.Sprintf("%s %s in %s", verb, key, aws.ToString(table)))
	}
	secret := func(verb string, name *string) { writes = append(writes, verb+" the secret "+aws.ToString(name)) }
	switch in := input.(type) {
	case *dynamodb.PutItemInput:
		add("write", in.TableName, in.Item)
	case *dynamodb.UpdateItemInput:
		add("change", in.TableName, in.Key)
	case *dynamodb.DeleteItemInput:
		add("delete", in.TableName, in.Key)
	case *dynamodb.TransactWriteItemsInput:
		for _, w := range in.TransactItems {
			switch {
			case w.Put != nil:
				add("write", w.Put.TableName, w.Put.Item)
			case w.Update != nil:
				add("change", w.Update.TableName, w.Update.Key)
			case w.Delete != nil:
				add("delete", w.Delete.TableName, w.Delete.Key)
			}
		}
	case *dynamodb.UpdateTableInput:
		writes = append(writes, "change the table "+aws.ToString(in.TableName))
	case *dynamodb.UpdateContinuousBackupsInput:
		writes = append(writes, "change the backups of the table "+aws.ToString(in.TableName))
	case *secretsmanager.CreateSecretInput:
		secret("make", in.Name)
	case *secretsmanager.UpdateSecretInput:
		secret("encrypt", in.SecretId)
	case *secretsmanager.PutSecretValueInput:
		secret("write", in.SecretId)
	case *secretsmanager.RestoreSecretInput:
		secret("restore", in.SecretId)
	case *secretsmanager.DeleteSecretInput:
		secret("delete", in.SecretId)
	}
	return writes
}

// printDryRun prints the first write of a command.
func (a *App) printDryRun(e *dryRunError) error {
	err := a.Print(map[string]any{"dry_run": true, "writes": e.writes},
		TableOf("WOULD", "", e.writes, func(write string) []string { return []string{write} }))
	a.Note("Dry run: nothing was changed. A real run begins with the above.")
	return err
}
