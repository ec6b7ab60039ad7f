// Package app holds what the commands of svc share: flags of the whole program, the stage, output, confirmation, errors
// and exit codes.
package app

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"svcapi/shared/project"
)

// App is one run of the command line: the console and the flags that every command has.
type App struct {
	Console

	Local, DryRun                             bool
	stage, region, profile, output, stackName string

	// started is true once the arguments are understood and the command runs.
	started bool
}

// Run runs the command line and returns the exit code.
func (a *App) Run(ctx context.Context, root *cobra.Command, args []string) int {
	a.addFlags(root)
	completeFlags(root)
	root.SetArgs(args)
	root.SetIn(a.In)
	root.SetOut(a.Out)
	root.SetErr(a.Errs)
	err := root.ExecuteContext(ctx)
	if err != nil && !a.started {
		err = Usagef("%v", err)
	}
	return a.Report(err)
}

func (a *App) addFlags(root *cobra.Command) {
	root.SilenceErrors, root.SilenceUsage = true, true
	root.PersistentPreRunE = func(*cobra.Command, []string) error {
		if a.output != outputTable && a.output != outputJSON {
			return errors.New(`--output is "table" or "json"`)
		}
		a.started = true
		return nil
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return plainFlagError(err) })
	flags := root.PersistentFlags()
	flags.BoolVar(&a.Local, "local", false, `work on the local stack that "make run" started`)
	flags.StringVar(&a.stage, "stage", "", "stage of the stack (default: SVC_STAGE, else dev)")
	flags.StringVar(&a.region, "region", "", "AWS region")
	flags.StringVar(&a.profile, "profile", "", "AWS profile")
	flags.StringVar(&a.stackName, "stack", "", "name of the CloudFormation stack (default: svc-STAGE)")
	flags.BoolVar(&a.DryRun, "dry-run", false, "change nothing: check all, and say with what a real run would begin")
	flags.StringVar(&a.output, "output", outputTable, `"table" for people, "json" for programs`)
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

// Group returns a command that only holds others.
func Group(name, short string, commands ...*cobra.Command) *cobra.Command {
	g := &cobra.Command{
		Use:   name,
		Short: short,
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	g.AddCommand(commands...)
	return g
}

// On returns the action of a command: On opens the stage, calls parse with the arguments, which puts them into the
// command's options and validates the options, and calls run.
func (a *App) On(parse func(args []string) error, run func(context.Context, *Stack) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		s, err := a.Open(cmd.Context())
		if err != nil {
			return err
		}
		if err := parse(args); err != nil {
			return err
		}
		return run(cmd.Context(), s)
	}
}

// Bind returns a parse that puts arguments into options which every text suits.
func Bind(into ...*string) func(args []string) error {
	return func(args []string) error {
		for i := range args {
			*into[i] = args[i]
		}
		return nil
	}
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

// EnvironmentFlag adds --env, which is development where it is left away.
func EnvironmentFlag(cmd *cobra.Command, env *project.Environment) {
	cmd.Flags().StringVar((*string)(env), "env", string(project.Development), "development or production")
}

// EitherEnvironmentFlag adds --env, which is empty where it is left away: both environments.
func EitherEnvironmentFlag(cmd *cobra.Command, env *project.Environment) {
	cmd.Flags().StringVar((*string)(env), "env", "", "development or production (default: both)")
}

// ParseEnvironment brings --env, as it was typed, to an environment's full name.
func ParseEnvironment(env *project.Environment) error {
	parsed, ok := project.ParseEnvironment(string(*env))
	if !ok || *env == "" {
		return Usagef("--env is development (dev) or production (prod), not %q", string(*env))
	}
	*env = parsed
	return nil
}

// ParseEitherEnvironment is ParseEnvironment for an --env that may be left away.
func ParseEitherEnvironment(env *project.Environment) error {
	if *env == "" {
		return nil
	}
	return ParseEnvironment(env)
}
