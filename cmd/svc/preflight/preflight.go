// Package preflight holds the command "svc preflight".
package preflight

import (
	"context"
	"os/exec"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"svcapi/cmd/svc/app"
)

// Command returns "svc preflight".
func Command(a *app.App) *cobra.Command {
	o := &options{App: a}
	cmd := &cobra.Command{
		Use:   "preflight",
		Short: "Check this machine, the parameters and the AWS account before a deployment",
		Long: `Check what would stop a deployment or mislead its operator: tools for the build,
parameters and their combinations, region and sign-in, a stack or tables that a
former deployment left, and the quotas of the account. The command changes
nothing, and needs no stack.

Parameters are those of the stage in samconfig.toml, and each --parameter.
Exit code 1 means that something is broken. Warnings alone have exit code 0.`,
		Example: `  svc preflight --stage prod --region eu-west-1
  svc preflight --stage prod --released --parameter DomainName=api.example.com`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	cmd.Flags().StringVar(&o.template, "template", "template.yaml", "template of the stack")
	cmd.Flags().StringVar(&o.config, "config-file", "samconfig.toml", "parameters by stage")
	cmd.Flags().StringArrayVar(&o.given, "parameter", nil, "NAME=VALUE, over that of the file; may be repeated")
	cmd.Flags().BoolVar(&o.released, "released", false, "the deployment is of a released package, which needs no build")
	cmd.Flags().BoolVar(&o.all, "all", false, "also show checks without a problem")
	return cmd
}

type options struct {
	*app.App
	template, config string
	given            []string
	released, all    bool
}

func (o *options) run(ctx context.Context) error {
	if o.Local {
		return app.Usagef("--local: the local stack is not deployed")
	}
	s, signInErr := o.Open(ctx)
	f := &flight{}
	f.tools(ctx, o.released)
	p, err := o.parameters()
	if err != nil {
		return err
	}
	f.checkParameters(p)
	if signInErr != nil {
		f.Fail("sign-in", "AWS", signInErr)
	} else {
		f.account(ctx, s, p, o.StackName())
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return o.PrintFindings(f.Found, o.all)
}

// flight is one run of preflight.
type flight struct{ app.Findings }

// tool is a program that a deployment runs.
type tool struct {
	name, version string // version is the argument that prints the version
	build         bool   // only sam build needs the tool
	why           string
}

var tools = []tool{
	{"sam", "--version", false, "the SAM CLI deploys: docs.aws.amazon.com, \"Install the AWS SAM CLI\""},
	{"go", "version", true, "sam build compiles the functions"},
	{"make", "--version", true, "sam build calls the Makefile"},
	{"bash", "--version", true, "the Makefile's recipes run in bash"},
	{"node", "--version", true, "the layer of the browser is unpacked by Node"},
	{"npm", "--version", true, "the browser comes from npm"},
}

// tools checks the system and its programs.
func (f *flight) tools(ctx context.Context, released bool) {
	if runtime.GOOS == "windows" && !released {
		f.Add(app.Broken, "system", runtime.GOOS, "the build needs make and bash with Linux paths", "Build inside WSL, or deploy a released package.")
	} else {
		f.Add(app.OK, "system", runtime.GOOS, "", "")
	}
	for _, t := range tools {
		if t.build && released {
			continue
		}
		out, err := exec.CommandContext(ctx, t.name, t.version).Output()
		if err != nil {
			f.Add(app.Broken, "tool", t.name, "it does not run: "+err.Error(), "Install it: "+t.why+".")
			continue
		}
		version, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
		f.Add(app.OK, "tool", t.name, version, "")
	}
}
