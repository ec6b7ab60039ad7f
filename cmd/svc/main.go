// Command svc is the operator's command line: projects, their credentials,
// integrations, credits and uncertain SMS, on a deployed stage or on the local stack.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"svcapi/shared/project"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, systemConsole(), os.Args[1:])
	stop()
	os.Exit(code)
}

// run runs one command line and returns the exit code.
func run(ctx context.Context, c console, args []string) int {
	a := &app{console: c}
	root := a.root()
	root.SetArgs(args)
	root.SetIn(c.in)
	root.SetOut(c.out)
	root.SetErr(c.errs)
	err := root.ExecuteContext(ctx)
	if err != nil && !a.started {
		err = &usageError{err.Error()}
	}
	return a.report(err)
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "svc",
		Short: "Operate SVC API: projects, credentials, integrations, credits, SMS, rates",
		Long: `Operate SVC API: projects, credentials, integrations, credits, SMS, rates.

Commands work on a deployed stage, found as the AWS CLI finds it (profile,
region, environment), or with --local on the stack that "make run" started.

Exit codes: 0 done, 1 failed, 2 wrong use, 3 not found, 4 refused, 130 interrupted.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(*cobra.Command, []string) error {
			if a.output != outputTable && a.output != outputJSON {
				return errors.New(`--output is "table" or "json"`)
			}
			a.started = true
			return nil
		},
	}
	flags := root.PersistentFlags()
	flags.BoolVar(&a.local, "local", false, `work on the local stack that "make run" started`)
	flags.StringVar(&a.stage, "stage", "", "stage of the stack (default: SVC_STAGE, else dev)")
	flags.StringVar(&a.region, "region", "", "AWS region")
	flags.StringVar(&a.profile, "profile", "", "AWS profile")
	flags.StringVar(&a.stackName, "stack", "", "name of the CloudFormation stack (default: svc-STAGE)")
	flags.BoolVar(&a.dryRun, "dry-run", false, "change nothing: check all, and say with what a real run would begin")
	flags.StringVar(&a.output, "output", outputTable, `"table" for people, "json" for programs`)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return plainFlagError(err) })
	root.AddCommand(a.project(), a.credential(), a.integration(), a.credit(), a.vendor(), a.sms(), a.burner(), a.rates(),
		a.price(), a.ledgerGroup(), a.secretsGroup(), a.doctor())
	completeFlags(root)
	return root
}

// flagWants says what a flag of a type takes.
var flagWants = map[string]string{
	"int":      "a whole number",
	"duration": "a time such as 90s or 5m",
	"bool":     "true or false",
}

// plainFlagError says what a flag takes in place of what its parser says.
func plainFlagError(err error) error {
	if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		if wants := flagWants[invalid.GetFlag().Value.Type()]; wants != "" {
			return fmt.Errorf("--%s is %s, not %q", invalid.GetFlag().Name, wants, invalid.GetValue())
		}
	}
	return err
}

// group is a command that only holds others.
func group(name, short string, commands ...*cobra.Command) *cobra.Command {
	g := &cobra.Command{
		Use:   name,
		Short: short,
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	g.AddCommand(commands...)
	return g
}

// completions are the values that flags of these names take, for the shell's completion.
var completions = map[string][]string{
	"env": {string(project.Development), string(project.Production)}, "mode": {string(project.Managed), string(project.BYOK)},
	"output": {outputTable, outputJSON},
}

// completeFlags lets "svc completion" scripts complete the values of flags, in every command.
func completeFlags(cmd *cobra.Command) {
	for name, values := range completions {
		if cmd.LocalFlags().Lookup(name) != nil {
			_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
		}
	}
	for _, child := range cmd.Commands() {
		completeFlags(child)
	}
}
