// Package app holds what the commands of svc share: flags of the whole program, the stage, output, confirmation, errors
// and exit codes.
package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"svcapi/shared/project"
	"svcapi/shared/project/admin"
	"svcapi/shared/wallet"
)

// App is one run of the command line, with the console and the flags of every command.
type App struct {
	Console

	Local, DryRun                      bool
	Stage                              string // as the flags and the environment name it, also where Open has failed
	region, profile, output, stackName string
	// Help is a YAML document: the short text, the long text and the examples of each command, by the command's words.
	Help []byte
	// Values returns the values of an argument for "svc completion", by its name in a use line and the arguments before
	// it.
	Values map[string]func(before []string) []string

	args    []string // of the command line
	started bool     // true when the arguments are valid and the command runs
	drawn   bool     // true while the terminal shows a progress
}

// Run runs the command line and returns the exit code.
func (a *App) Run(ctx context.Context, root *cobra.Command, args []string) int {
	a.args = args
	a.addFlags(root)
	var help map[string]commandHelp
	if err := yaml.Unmarshal(a.Help, &help); err != nil {
		return a.Report(err)
	}
	a.finish(root, help)
	root.SetArgs(args)
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
	root.PersistentPreRun = func(*cobra.Command, []string) { a.started = true }
	root.SetFlagErrorFunc(plainFlagError)
	flags := root.PersistentFlags()
	flags.BoolVar(&a.Local, "local", false, `work on the local stack that "make run" started`)
	flags.StringVar(&a.Stage, "stage", "", "stage of the stack (default: SVC_STAGE, else dev)")
	flags.StringVar(&a.region, "region", "", "AWS region")
	flags.StringVar(&a.profile, "profile", "", "AWS profile")
	flags.StringVar(&a.stackName, "stack", "", "name of the CloudFormation stack (default: svc-STAGE)")
	flags.BoolVar(&a.DryRun, "dry-run", false,
		"change nothing: validate everything, and print the first write of a real run")
	ChoiceFlag(root, flags, "output", `"table" for people (default), "json" for programs, "csv" for spreadsheets`,
		&a.output, map[string]string{"table": "", "json": "json", "csv": "csv"})
}

// Line returns a command line of svc for the stage of this run.
func (a *App) Line(format string, args ...any) string {
	words := []string{"svc", fmt.Sprintf(format, args...)}
	if a.Local {
		return strings.Join(append(words, "--local"), " ")
	}
	for _, flag := range [][2]string{{"stage", a.Stage}, {"region", a.region}, {"profile", a.profile},
		{"stack", a.stackName}} {
		if flag[1] != "" {
			words = append(words, "--"+flag[0], flag[1])
		}
	}
	return strings.Join(words, " ")
}

// plain matches an argument that a shell takes as it is.
var plain = regexp.MustCompile(`^[A-Za-z0-9_./:=,@%+-]+$`)

// Again returns the command line of this run with another flag, for a shell.
func (a *App) Again(flag string) string {
	words := []string{"svc"}
	for _, arg := range a.args {
		if !plain.MatchString(arg) {
			arg = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
		}
		words = append(words, arg)
	}
	return strings.Join(append(words, flag), " ")
}

// plainFlagError returns an error that describes the values of the flag instead of the failure of its parser.
func plainFlagError(cmd *cobra.Command, err error) error {
	if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		flag := invalid.GetFlag()
		values := map[string]string{"int": "a whole number", "duration": "a time such as 90s or 5m", "bool": "true or false"}
		text := cmp.Or(values[flag.Value.Type()], invalid.Unwrap().Error())
		return fmt.Errorf("--%s is %s, not %q", flag.Name, text, invalid.GetValue())
	}
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	ofCredit := strings.HasPrefix(cmd.CommandPath(), "svc credit ")
	if ok && ofCredit && strings.ContainsAny(unknown.GetSpecifiedShortnames(), "0123456789") {
		return errors.New(`CREDITS is not negative here; "svc credit adjust PROJECT --by CREDITS" removes credits`)
	}
	return err
}

// Group returns a command that only holds others.
func Group(name string, commands ...*cobra.Command) *cobra.Command {
	g := &cobra.Command{
		Use: name, SuggestionsMinimumDistance: 2,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			texts := []string{fmt.Sprintf("unknown command %q for %q", args[0], cmd.CommandPath())}
			for _, meant := range cmd.SuggestionsFor(args[0]) {
				texts = append(texts, fmt.Sprintf("did you mean %q?", cmd.CommandPath()+" "+meant))
			}
			return errors.New(strings.Join(texts, "; "))
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	g.AddCommand(commands...)
	return g
}

// Command returns a command by its use line, which names the arguments. The command calls parse, which stores and
// validates the arguments and flags before any call of AWS, opens the stage, and then calls run. A command without
// arguments to validate has a nil parse.
func (a *App) Command(use string, parse func(args []string) error,
	run func(context.Context, *Stack) error) *cobra.Command {
	return &cobra.Command{Use: use, Args: countArguments(use), RunE: func(cmd *cobra.Command, args []string) error {
		if parse != nil {
			if err := parse(args); err != nil {
				return err
			}
		}
		s, err := a.Open(cmd.Context())
		if err != nil {
			return err
		}
		return run(cmd.Context(), s)
	}}
}

// ProjectCommand returns a command whose first argument is an existing project. ProjectCommand reads the project after
// parse, which gets the other arguments.
func (a *App) ProjectCommand(use string, parse func(args []string) error,
	run func(context.Context, *Stack, *project.Record) error) *cobra.Command {
	var id string
	return a.Command(use, func(args []string) error {
		if id = args[0]; !project.HasIDForm(id) {
			return errNoProject(id)
		}
		if parse == nil {
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

// countArguments returns the rule for the arguments that a use line names: the arguments from the first "[" on are
// optional, and "..." repeats the last argument.
func countArguments(use string) cobra.PositionalArgs {
	names, required := arguments(use)
	return func(_ *cobra.Command, args []string) error {
		if len(args) < required {
			return errors.New("missing " + strings.Join(names[len(args):required], " and "))
		}
		if len(args) > len(names) && !strings.HasSuffix(use, "...") {
			return fmt.Errorf("one argument too many: %q", args[len(names)])
		}
		return nil
	}
}

// The flags of the daily limits that svc proposes.
const (
	ProposedCredits = "--daily-credits 5000000" // 5 USD
	ProposedUnits   = "--daily-units 2000"
)

// Bind returns a parse function that stores the arguments in options without validation.
func Bind(into ...*string) func(args []string) error {
	return func(args []string) error {
		for i := range args {
			*into[i] = args[i]
		}
		return nil
	}
}

// Integer reads an argument or a flag that is a number from least to most.
func Integer(name, text string, least, most int64) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < least || n > most {
		return 0, Usagef("%s is a whole number from %s to %s, not %q", name, wallet.Grouped(least),
			wallet.Grouped(most), text)
	}
	return n, nil
}

// ChoiceFlag adds a flag that stores one of a few values by its name, in any case, and completes the names.
func ChoiceFlag[V any](cmd *cobra.Command, flags *pflag.FlagSet, flag, usage string, into *V, values map[string]V) {
	names := slices.Sorted(maps.Keys(values))
	flags.Func(flag, usage, func(text string) (err error) {
		value, ok := values[strings.ToLower(text)]
		if *into = value; !ok {
			err = errors.New("one of " + strings.Join(names, ", "))
		}
		return err
	})
	complete := cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp)
	_ = cmd.RegisterFlagCompletionFunc(flag, complete) // the flag exists
}

// EnvironmentFlag adds --env with a default, for one environment or, where the command takes both, also for "both".
func EnvironmentFlag(cmd *cobra.Command, envs *[]project.Environment, initial string, both bool) {
	development, production := []project.Environment{project.Development}, []project.Environment{project.Production}
	values := map[string][]project.Environment{
		"development": development, "dev": development, "production": production, "prod": production,
	}
	usage := "development or production"
	if both {
		values["both"], usage = admin.Environments(), "development, production or both"
	}
	if initial != "" {
		usage += " (default " + initial + ")"
	}
	*envs = values[initial]
	ChoiceFlag(cmd, cmd.Flags(), "env", usage, envs, values)
}

// commandHelp holds the texts of a command for its help. An example is a command line of a shell.
type commandHelp struct{ Short, Long, Example string }

// finish sets the help of a command and of its commands, and registers their completion: of the arguments by their
// names in the use line, and of the flags that name a project.
func (a *App) finish(cmd *cobra.Command, help map[string]commandHelp) {
	for _, c := range cmd.Commands() {
		a.finish(c, help)
	}
	texts := help[strings.TrimPrefix(cmd.CommandPath(), "svc ")]
	cmd.Short, cmd.Long = texts.Short, texts.Long
	if texts.Example != "" {
		cmd.Example = "  " + strings.ReplaceAll(texts.Example, "\n", "\n  ")
	}
	for _, flag := range []string{"project", "like"} {
		if cmd.Flags().Lookup(flag) != nil {
			_ = cmd.RegisterFlagCompletionFunc(flag, a.projects) // the flag exists
		}
	}
	names, _ := arguments(cmd.Use)
	if len(names) == 0 {
		return
	}
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string,
		typed string) (values []string, _ cobra.ShellCompDirective) {
		switch name := append(names[min(len(args), len(names)):], "")[0]; {
		case name == "PROJECT":
			return a.projects(cmd, args, typed)
		case name == "FILE":
			return nil, cobra.ShellCompDirectiveDefault
		case a.Values[name] != nil:
			values = a.Values[name](args)
		}
		return values, cobra.ShellCompDirectiveNoFileComp
	}
}

// projects returns the IDs of the stage's projects.
func (a *App) projects(cmd *cobra.Command, _ []string, _ string) (ids []string, _ cobra.ShellCompDirective) {
	s, err := a.Open(cmd.Context())
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	projects, err := s.ListProjects(cmd.Context(), "")
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	for _, p := range projects {
		ids = append(ids, p.ID)
	}
	return ids, cobra.ShellCompDirectiveNoFileComp
}

// arguments returns the names of the arguments in a use line, and how many of them are required: those before the first
// "[".
func arguments(use string) (names []string, required int) {
	use, _, _ = strings.Cut(use, " --")
	before, _, _ := strings.Cut(use, "[")
	names = strings.Fields(strings.NewReplacer("[", "", "]", "", "...", "").Replace(use))[1:]
	return names, len(strings.Fields(before)) - 1
}

// firstDay is before the first entry of every ledger.
var firstDay = time.Date(2020, time.January, 1, 0, 0, 0, 0, time.UTC)

// Days are the UTC days that the flags of a command name.
type Days struct {
	First, Last time.Time // the begins of the first and of the last day; Parse sets them

	day, month, from, to string
	days                 int
	given                func(names ...string) bool // reports whether the command line has one of these flags
}

// AddFlags adds the flags. Without any of them the only day is today.
func (d *Days) AddFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&d.day, "day", "today", "UTC date, today or yesterday")
	flags.IntVar(&d.days, "days", 1, "number of days, --day the last of them")
	flags.StringVar(&d.month, "month", "", "UTC month, such as 2026-03")
	flags.StringVar(&d.from, "from", "", "first UTC date, today or yesterday")
	flags.StringVar(&d.to, "to", "today", "last UTC date, today or yesterday")
	d.given = func(names ...string) bool { return slices.ContainsFunc(names, flags.Changed) }
}

// Parse sets the days of the flags, whatever the arguments are. The days are not before 2020 and not after today.
func (d *Days) Parse([]string) (err error) {
	today := time.Now().UTC().Truncate(24 * time.Hour)
	parse := func(flag, text, layout string) time.Time {
		day, failed := time.Parse(layout, text)
		switch {
		case text == "today" && layout == time.DateOnly:
			return today
		case text == "yesterday" && layout == time.DateOnly:
			return today.AddDate(0, 0, -1)
		case failed != nil:
			err = Usagef("%s is a UTC date such as 2026-03-31, today or yesterday, or for --month such as 2026-03, not %q", flag,
				text)
		}
		err = cmp.Or(err, ValidateDay(flag, day))
		return day
	}
	whole, between := d.given("month"), d.given("from", "to")
	switch {
	case whole && between, (whole || between) && d.given("day", "days"), d.given("to") && d.from == "":
		return Usagef("the days are --day with --days, or --month, or --from with --to")
	case whole:
		d.First = parse("--month", d.month, "2006-01")
		if d.Last = d.First.AddDate(0, 1, -1); d.Last.After(today) {
			d.Last = today
		}
	case between:
		d.First, d.Last = parse("--from", d.from, time.DateOnly), parse("--to", d.to, time.DateOnly)
	default:
		d.Last = parse("--day", d.day, time.DateOnly)
		d.First = d.Last.AddDate(0, 0, 1-d.days)
	}
	if err == nil && d.First.After(d.Last) {
		err = Usagef("--days is 1 or more, and --from is not after --to")
	}
	return cmp.Or(err, ValidateDay("the first day", d.First))
}

// Period returns the month, the day, or the first and the last day with two dots between them.
func (d *Days) Period() string {
	first, last := d.First.Format(time.DateOnly), d.Last.Format(time.DateOnly)
	switch {
	case d.given("month"):
		return d.First.Format("2006-01")
	case first == last:
		return first
	}
	return first + ".." + last
}

// ValidateDay refuses days that no ledger entry can have.
func ValidateDay(flag string, at time.Time) error {
	today := time.Now().UTC().Truncate(24 * time.Hour)
	if at.Before(firstDay) || !at.Before(today.AddDate(0, 0, 1)) {
		return Usagef("%s is of %s; it can be of %s to today, %s (UTC)", flag, at.UTC().Format(time.DateOnly),
			firstDay.Format(time.DateOnly), today.Format(time.DateOnly))
	}
	return nil
}
