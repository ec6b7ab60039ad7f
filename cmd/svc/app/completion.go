package app

import (
	"strings"

	"github.com/spf13/cobra"
)

// complete registers the completion of a command and of its commands: of the arguments by their names in the use line,
// and of the flags that name a project.
func (a *App) complete(cmd *cobra.Command) {
	for _, c := range cmd.Commands() {
		a.complete(c)
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
	if err == nil {
		ids, err = s.ProjectIDs(cmd.Context(), "")
	}
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
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
