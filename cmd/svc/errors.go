package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/aws/smithy-go"

	"svcapi/functions/ratesync/refresh"
	"svcapi/shared/credit"
	"svcapi/shared/project"
	"svcapi/shared/upstream"
)

// The exit codes.
const (
	exitFailed      = 1
	exitUsage       = 2
	exitNotFound    = 3
	exitRefused     = 4
	exitInterrupted = 130
)

// usageError is a command that cannot be meant as it was written.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

// unconfirmedError is a command that waits for a yes.
type unconfirmedError struct{ text string }

func (e *unconfirmedError) Error() string { return e.text }

// signInError is a caller without usable AWS credentials.
type signInError struct{ cause error }

func (e *signInError) Error() string { return "no AWS credentials: " + e.cause.Error() }
func (e *signInError) Unwrap() error { return e.cause }

var (
	errNoLocalStack = errors.New("no local stack is running here (.local/demo.json is missing)")
	// errRefused is a rule of the command line that the command would break.
	errRefused = errors.New("refused")
)

// advice says for an error which exit code it has and what to do about it.
type advice struct {
	is   error
	exit int
	hint string
}

// adviceByError holds the product's own errors, the first that matches counts.
var adviceByError = []advice{
	{context.Canceled, exitInterrupted, ""},
	{errNoLocalStack, exitFailed, "Start it in another terminal with: make run"},
	{project.ErrNotFound, exitNotFound, `"svc project list" shows the projects, "svc project show" what is in one.`},
	{project.ErrExists, exitRefused, "Choose another ID."},
	{project.ErrMixedModes, exitRefused, `Disable the others first: "svc integration disable".`},
	{project.ErrBusy, exitRefused, "Run the command again."},
	{project.ErrRotating, exitRefused, `The client may still use the older secret. Finish it with --finish, or give --replace, which drops the newer secret and makes another.`},
	{project.ErrShardsSet, exitRefused, `"svc project show" shows the number to come.`},
	{project.ErrInvalid, exitUsage, ""},
	{credit.ErrOtherMovement, exitRefused, `Leave --id away for a new movement; "svc credit ledger" shows the old one.`},
	{credit.ErrOutOfRange, exitRefused, `"svc credit balance" shows what is there.`},
	{credit.ErrNoWallet, exitRefused, `"svc credit grant" makes the wallet.`},
	{credit.ErrNotCharged, exitNotFound, `"svc credit ledger --output json" shows charges.`},
	{credit.ErrUncertain, exitRefused, `Ask the vendor whether it was sent, then "svc sms uncertain resolve".`},
	{credit.ErrNotUncertain, exitNotFound, `"svc sms uncertain list" shows those that are open.`},
	{credit.ErrResolved, exitRefused, `A resolution is final; "svc credit ledger" shows it.`},
	{errRejected, exitRefused, "Nothing was sent. The vendor's own words are above: check the number, the sender and the text."},
	{errAccount, exitRefused, `Nothing was sent. Correct the account: "svc integration set --ask", for Managed ones "svc vendor account".`},
	{errNotSent, exitFailed, "Check the integration's endpoint and the way there."},
	{errNoAnswer, exitFailed, mayBeSent},
	{errUnsettled, exitFailed, mayBeSent},
	{upstream.ErrIncomplete, exitRefused, `"svc vendor list" shows what a vendor needs, "svc vendor account" sets what Managed ones share; --incomplete stores it as it is.`},
	{refresh.ErrNoRates, exitFailed, `What was in use stays. "svc rates show" tells what was wrong with each source.`},
	{errRefused, exitRefused, ""},
	{syscall.ECONNREFUSED, exitFailed, "Nothing listens there. With --local: is the local stack still running?"},
}

const mayBeSent = "The message may have been sent: ask the vendor before you send again."

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

// explain gives an error's exit code and what to do about it.
func explain(err error) (exit int, hint string) {
	if _, ok := errors.AsType[*usageError](err); ok {
		return exitUsage, `"svc help", or --help after any command, shows how it is used.`
	}
	if _, ok := errors.AsType[*unconfirmedError](err); ok {
		return exitUsage, ""
	}
	for _, a := range adviceByError {
		if errors.Is(err, a.is) {
			return a.exit, a.hint
		}
	}
	if _, ok := errors.AsType[*signInError](err); ok {
		return exitFailed, signIn
	}
	if answered, ok := errors.AsType[smithy.APIError](err); ok {
		return exitFailed, hintByCode[answered.ErrorCode()]
	}
	return exitFailed, ""
}

// refusedForSure tells whether an error of a movement of credits says that it did not take place.
func refusedForSure(err error) bool {
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

// report prints an error and returns the exit code.
func (a *app) report(err error) int {
	if err == nil {
		return 0
	}
	if dry, ok := errors.AsType[*dryRunError](err); ok {
		return a.report(a.printDryRun(dry))
	}
	exit, hint := explain(err)
	if exit == exitInterrupted {
		fmt.Fprintln(a.errs, "\nsvc: interrupted")
		return exit
	}
	fmt.Fprintf(a.errs, "svc: %s\n", strings.TrimSpace(err.Error()))
	if hint != "" {
		fmt.Fprintf(a.errs, "     %s\n", hint)
	}
	return exit
}
