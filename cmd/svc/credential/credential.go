// Package credential holds the command "svc credential".
package credential

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"svcapi/cmd/svc/app"
	"svcapi/shared/project"
)

// Command returns "svc credential".
func Command(a *app.App) *cobra.Command {
	return app.Group("credential", "Issue, rotate and revoke the credentials of projects", issue(a), rotate(a), revoke(a))
}

// View is a credential as programs read it. Nothing of a secret is in it.
type View struct {
	ClientID    string              `json:"client_id"`
	Environment project.Environment `json:"environment"`
	Active      bool                `json:"active"`
	LiveSecrets int                 `json:"live_secrets"`
}

// ViewAll views a project's credentials, for programs and for people.
func ViewAll(rec *project.Record) ([]View, app.Table) {
	views := make([]View, 0, len(rec.Credentials))
	t := app.Table{Header: []string{"CLIENT ID", "ENVIRONMENT", "STATE", "LIVE SECRETS"}, Empty: `No credentials. "svc credential issue" makes one.`}
	for _, c := range rec.Credentials {
		state := "revoked"
		if c.Active {
			state = "active"
		}
		views = append(views, View{c.ClientID, c.Environment, c.Active, len(c.Secrets)})
		t.Rows = append(t.Rows, []string{c.ClientID, string(c.Environment), state, strconv.Itoa(len(c.Secrets))})
	}
	return views, t
}

// Issued is the one showing of a client secret.
type Issued struct {
	ProjectID    string              `json:"project_id"`
	Environment  project.Environment `json:"environment,omitempty"`
	ClientID     string              `json:"client_id"`
	ClientSecret string              `json:"client_secret"`
}

func printIssued(a *app.App, i Issued) error {
	rows := [][]string{{"Project", i.ProjectID}}
	if i.Environment != "" {
		rows = append(rows, []string{"Environment", string(i.Environment)})
	}
	rows = append(rows, []string{"Client ID", i.ClientID}, []string{"Client secret", i.ClientSecret})
	if err := a.Print(i, app.Table{Rows: rows}); err != nil {
		return err
	}
	a.Note("The secret is shown this once. Keep it now: only its digest is stored.")
	return nil
}

func printState(a *app.App, clientID, state string) error {
	return a.Print(struct {
		ClientID string `json:"client_id"`
		State    string `json:"state"`
	}{clientID, state}, app.Table{Rows: [][]string{{"Client ID", clientID}, {"State", state}}})
}

type issueOptions struct {
	*app.App
	projectID   string
	environment project.Environment
}

func issue(a *app.App) *cobra.Command {
	o := &issueOptions{App: a}
	cmd := &cobra.Command{
		Use:     "issue PROJECT",
		Short:   "Make a new client ID and secret",
		Example: "  svc credential issue acme --env production",
		Args:    cobra.ExactArgs(1),
		RunE:    a.On(o.parse, o.run),
	}
	app.EnvironmentFlag(cmd, &o.environment)
	return cmd
}

func (o *issueOptions) parse(args []string) error {
	o.projectID = args[0]
	return app.ParseEnvironment(&o.environment)
}

func (o *issueOptions) run(ctx context.Context, s *app.Stack) error {
	if _, err := s.Load(ctx, o.projectID); err != nil {
		return err
	}
	clientID, clientSecret, err := s.Projects.IssueCredential(ctx, o.projectID, o.environment)
	if err != nil {
		return err
	}
	return printIssued(o.App, Issued{o.projectID, o.environment, clientID, clientSecret})
}

type rotateOptions struct {
	*app.App
	clientID        string
	finish, replace bool
}

func rotate(a *app.App) *cobra.Command {
	o := &rotateOptions{App: a}
	cmd := &cobra.Command{
		Use:   "rotate CLIENT_ID",
		Short: "Give a client ID a second secret, or end the older one",
		Long: `Give a client ID a second secret. Both work until the rotation is finished:

  svc credential rotate CLIENT_ID            shows the new secret
  (hand it to the client, wait until it is in use)
  svc credential rotate CLIENT_ID --finish   ends the older secret

While two secrets are live no third is made. If the newer one was lost before
the client had it, --replace makes another in its place; the older one stays.`,
		Args: cobra.ExactArgs(1),
		RunE: a.On(o.parse, o.run),
	}
	cmd.Flags().BoolVar(&o.finish, "finish", false, "end all secrets but the newest; makes none")
	cmd.Flags().BoolVar(&o.replace, "replace", false, "of two live secrets, end the newer and make another in its place")
	return cmd
}

func (o *rotateOptions) parse(args []string) error {
	o.clientID = args[0]
	if o.finish && o.replace {
		return app.Usagef("give --finish or --replace, not both")
	}
	return nil
}

func (o *rotateOptions) run(ctx context.Context, s *app.Stack) error {
	if o.finish {
		if err := s.Projects.FinishRotation(ctx, o.clientID); err != nil {
			return err
		}
		return printState(o.App, o.clientID, "one live secret, the newest")
	}
	clientSecret, err := s.Projects.RotateCredential(ctx, o.clientID, o.replace)
	if err != nil {
		return err
	}
	projectID, _ := project.ParseClientID(o.clientID)
	return printIssued(o.App, Issued{ProjectID: projectID, ClientID: o.clientID, ClientSecret: clientSecret})
}

type revokeOptions struct {
	*app.App
	clientID string
	yes      bool
}

func revoke(a *app.App) *cobra.Command {
	o := &revokeOptions{App: a}
	cmd := &cobra.Command{
		Use:   "revoke CLIENT_ID",
		Short: "End a client ID and its secrets for good",
		Args:  cobra.ExactArgs(1),
		RunE:  a.On(app.Bind(&o.clientID), o.run),
	}
	cmd.Flags().BoolVar(&o.yes, "yes", false, "do not ask")
	return cmd
}

func (o *revokeOptions) run(ctx context.Context, s *app.Stack) error {
	question := fmt.Sprintf("Revoke %s on stage %s? Its requests will be refused, for good.", o.clientID, s.Stage)
	if err := o.Confirm(ctx, o.yes, question); err != nil {
		return err
	}
	if err := s.Projects.RevokeCredential(ctx, o.clientID); err != nil {
		return err
	}
	return printState(o.App, o.clientID, "revoked (functions follow within seconds)")
}
