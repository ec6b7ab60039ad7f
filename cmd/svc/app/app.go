// Package app holds what the commands of svc share: flags of the whole program, the stage, output, confirmation, errors
// and exit codes.
package app

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"svcapi/shared/project"
)

// App is one run of the command line, with the console and the flags of every command.
type App struct {
	Console

	Local, DryRun                             bool
	stage, region, profile, output, stackName string

	started bool // true when the arguments are valid and the command runs
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
	flags.BoolVar(&a.DryRun, "dry-run", false, "change nothing: validate everything, and print the first write of a real run")
	flags.StringVar(&a.output, "output", outputTable, `"table" for people, "json" for programs`)
}

// flagValues describes the values of each type of flag.
var flagValues = map[string]string{
	"int":         "a whole number",
	"duration":    "a time such as 90s or 5m",
	"bool":        "true or false",
	"environment": "development (dev) or production (prod)",
}

// plainFlagError returns an error that describes the values of the flag instead of the failure of its parser.
func plainFlagError(err error) error {
	if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		if values := flagValues[invalid.GetFlag().Value.Type()]; values != "" {
			return fmt.Errorf("--%s is %s, not %q", invalid.GetFlag().Name, values, invalid.GetValue())
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

// Command completes a command with its use line and texts. The use line names the arguments. The action opens the stage,
// calls parse, which stores and validates the arguments and flags, and then run. A command without arguments to validate has a nil parse.
func (a *App) Command(cmd *cobra.Command, parse func(args []string) error, run func(context.Context, *Stack) error) *cobra.Command {
	cmd.Args = countArguments(cmd.Use)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		s, err := a.Open(cmd.Context())
		if err != nil {
			return err
		}
		if parse != nil {
			if err := parse(args); err != nil {
				return err
			}
		}
		return run(cmd.Context(), s)
	}
	return cmd
}

// ProjectCommand completes a command whose first argument is an existing project. ProjectCommand reads the project after
// parse, which gets the other arguments.
func (a *App) ProjectCommand(cmd *cobra.Command, parse func(args []string) error, run func(context.Context, *Stack, *project.Record) error) *cobra.Command {
	var id string
	return a.Command(cmd, func(args []string) error {
		if id = args[0]; parse == nil {
			return nil
		}
		return parse(args[1:])
	}, func(ctx context.Context, s *Stack) error {
		rec, err := s.Load(ctx, id)
		if err != nil {
			return err
		}
		return run(ctx, s, rec)
	})
}

// countArguments returns the rule for the number of arguments that a use line names: the arguments from the first "[" on
// are optional, and "..." repeats the last argument.
func countArguments(use string) cobra.PositionalArgs {
	use, _, _ = strings.Cut(use, " --")
	required, _, _ := strings.Cut(use, "[")
	least, most := len(strings.Fields(required))-1, len(strings.Fields(use))-1
	switch {
	case strings.HasSuffix(use, "..."):
		return cobra.MinimumNArgs(least)
	case least == most:
		return cobra.ExactArgs(most)
	}
	return cobra.RangeArgs(least, most)
}

// Bind returns a parse function that stores the arguments in options without validation.
func Bind(into ...*string) func(args []string) error {
	return func(args []string) error {
		for i := range args {
			*into[i] = args[i]
		}
		return nil
	}
}

// completions are the values of flags by name, for the completion of the shell.
var completions = map[string][]string{
	"env": {string(project.Development), string(project.Production)}, "mode": {string(project.Managed), string(project.BYOK)},
	"output": {outputTable, outputJSON},
}

// completeFlags registers the values of the flags of every command for "svc completion".
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

// environmentFlag is the value of --env. An optional flag may be empty, for both environments.
type environmentFlag struct {
	env      *project.Environment
	optional bool
}

func (f environmentFlag) String() string {
	if f.env == nil { // pflag compares with the zero value
		return ""
	}
	return string(*f.env)
}

func (environmentFlag) Type() string { return "environment" }

// Set stores the full name of an environment.
func (f environmentFlag) Set(text string) error {
	env, ok := project.ParseEnvironment(text)
	switch {
	case text == "" && f.optional:
		env = ""
	case text == "" || !ok:
		return errors.New("not an environment")
	}
	*f.env = env
	return nil
}

// EnvironmentFlag adds --env with the default development.
func EnvironmentFlag(cmd *cobra.Command, env *project.Environment) {
	*env = project.Development
	cmd.Flags().Var(environmentFlag{env: env}, "env", "development or production")
}

// OptionalEnvironmentFlag adds --env without a default, which means both environments.
func OptionalEnvironmentFlag(cmd *cobra.Command, env *project.Environment) {
	cmd.Flags().Var(environmentFlag{env, true}, "env", "development or production (default: both)")
}
