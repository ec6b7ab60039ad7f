package app

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/aws/smithy-go"

	"svcapi/shared/credit"
	"svcapi/shared/project"
	"svcapi/shared/rates/refresh"
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

// UsageError is a command that cannot be meant as it was written.
type UsageError struct{ text string }

func (e *UsageError) Error() string { return e.text }

// Usagef returns a UsageError.
func Usagef(format string, args ...any) error { return &UsageError{fmt.Sprintf(format, args...)} }

// ProblemsError is the error of an examination that found so many problems, which have been printed.
type ProblemsError int

func (p ProblemsError) Error() string {
	if p == 1 {
		return "1 problem"
	}
	return fmt.Sprintf("%d problems", int(p))
}

// FailureError is an error of one command that has its own exit code and hint.
type FailureError struct {
	Text string
	Exit int
	Hint string
}

func (e *FailureError) Error() string { return e.Text }

// unconfirmedError is a command that waits for a yes.
type unconfirmedError struct{ text string }

func (e *unconfirmedError) Error() string { return e.text }

// signInError is a caller without usable AWS credentials.
type signInError struct{ cause error }

func (e *signInError) Error() string { return "no AWS credentials: " + e.cause.Error() }
func (e *signInError) Unwrap() error { return e.cause }

var (
	errNoLocalStack = errors.New("no local stack is running here (.local/demo.json is missing)")
	// ErrRefused is a rule of the command line that the command would break.
	ErrRefused = errors.New("refused")
)

// advice says for an error which exit code it has and what to do about it.
type advice struct {
	is   error
	exit int
	hint string
}

// adviceByError holds the product's own errors, the first that matches counts.
var adviceByError = []advice{
	{context.Canceled, ExitInterrupted, ""},
	{errNoLocalStack, ExitFailed, "Start it in another terminal with: make run"},
	{project.ErrNotFound, ExitNotFound, `"svc project list" shows the projects, "svc project show" what is in one.`},
	{project.ErrExists, ExitRefused, "Choose another ID."},
	{project.ErrMixedModes, ExitRefused, `Disable the others first: "svc integration disable".`},
	{project.ErrBusy, ExitRefused, "Run the command again."},
	{project.ErrRotating, ExitRefused, `The client may still use the older secret. Finish it with --finish, or give --replace, which drops the newer secret and makes another.`},
	{project.ErrShardsSet, ExitRefused, `"svc project show" shows the number to come.`},
	{project.ErrInvalid, ExitUsage, ""},
	{credit.ErrOtherMovement, ExitRefused, `Leave --id away for a new movement; "svc credit ledger" shows the old one.`},
	{credit.ErrOutOfRange, ExitRefused, `"svc credit balance" shows what is there.`},
	{credit.ErrNoWallet, ExitRefused, `"svc credit grant" makes the wallet.`},
	{credit.ErrNotCharged, ExitNotFound, `"svc credit ledger --output json" shows charges.`},
	{credit.ErrUncertain, ExitRefused, `Ask the vendor whether it was sent, then "svc sms uncertain resolve".`},
	{credit.ErrNotUncertain, ExitNotFound, `"svc sms uncertain list" shows those that are open.`},
	{credit.ErrResolved, ExitRefused, `A resolution is final; "svc credit ledger" shows it.`},
	{upstream.ErrIncomplete, ExitRefused, `"svc vendor list" shows what a vendor needs, "svc vendor account" sets what Managed ones share; --incomplete stores it as it is.`},
	{refresh.ErrNoRates, ExitFailed, `What was in use stays. "svc rates show" tells what was wrong with each source.`},
	{ErrRefused, ExitRefused, ""},
	{syscall.ECONNREFUSED, ExitFailed, "Nothing listens there. With --local: is the local stack still running?"},
}

const signIn = `Sign in ("aws sso login"), choose --profile, or set the AWS_ variables. "aws sts get-caller-identity" must work.`

// hintByCode holds what to do about the errors that AWS answers.
var hintByCode = map[string]string{
	"ResourceNotFoundException":   "The stage's tables are not there. Are --stage and --region right, and is the stack deployed?",
	"AccessDenied":                "Your AWS identity lacks a permission that the command needs.",
	"AccessDeniedException":       "Your AWS identity lacks a permission that the command needs.",
	"UnrecognizedClientException": signIn,
	"InvalidClientTokenId":        signIn,
	"InvalidSignatureException":   signIn,
	"ExpiredToken":                signIn,
	"ExpiredTokenException":       signIn,
}

// explain returns an error's exit code and what to do about it.
func explain(err error) (exit int, hint string) {
	if _, ok := errors.AsType[*UsageError](err); ok {
		return ExitUsage, `"svc help", or --help after any command, shows how it is used.`
	}
	if _, ok := errors.AsType[*unconfirmedError](err); ok {
		return ExitUsage, ""
	}
	failure, ok := errors.AsType[*FailureError](err)
	if ok && !errors.Is(err, context.Canceled) {
		return failure.Exit, failure.Hint
	}
	for _, a := range adviceByError {
		if errors.Is(err, a.is) {
			return a.exit, a.hint
		}
	}
	if _, ok := errors.AsType[*signInError](err); ok {
		return ExitFailed, signIn
	}
	if answered, ok := errors.AsType[smithy.APIError](err); ok {
		return ExitFailed, hintByCode[answered.ErrorCode()]
	}
	return ExitFailed, ""
}

// Hint returns what to do about an error, what AWS answered first.
func Hint(err error) string {
	if answered, ok := errors.AsType[smithy.APIError](err); ok && hintByCode[answered.ErrorCode()] != "" {
		return hintByCode[answered.ErrorCode()]
	}
	_, hint := explain(err)
	return hint
}

// RefusedForSure reports whether an error of a movement of credits says that the movement did not take place.
func RefusedForSure(err error) bool {
	for _, sure := range []error{credit.ErrOtherMovement, credit.ErrOutOfRange, credit.ErrNoWallet} {
		if errors.Is(err, sure) {
			return true
		}
	}
	if _, dry := errors.AsType[*dryRunError](err); dry {
		return true
	}
	answered, ok := errors.AsType[smithy.APIError](err)
	return ok && hintByCode[answered.ErrorCode()] != ""
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
	fmt.Fprintf(a.Errs, "svc: %s\n", strings.TrimSpace(err.Error()))
	if hint != "" {
		fmt.Fprintf(a.Errs, "     %s\n", hint)
	}
	return exit
}
