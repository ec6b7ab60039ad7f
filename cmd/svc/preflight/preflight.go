// Package preflight holds the command "svc preflight".
package preflight

import (
	"context"

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
