// Package version holds the command "svc version".
package version

import (
	"cmp"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"svcapi/cmd/svc/app"
)

type view struct {
	Version string `json:"version"`
	Commit  string `json:"commit"`
	Go      string `json:"go"`
	System  string `json:"system"`
}

// Command returns "svc version". A release names its version; another build has the version that Go derives from the
// commit.
func Command(a *app.App, release string) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Show the version of svc", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			v := view{Version: release, Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH}
			if build, ok := debug.ReadBuildInfo(); ok {
				v.Version = cmp.Or(v.Version, build.Main.Version)
				for _, s := range build.Settings {
					if s.Key == "vcs.revision" {
						v.Commit = s.Value
					}
				}
			}
			return a.Print(v, app.Table{Rows: app.Rows("Version", v.Version, "Commit", v.Commit, "Go", v.Go, "System", v.System)})
		},
	}
}
