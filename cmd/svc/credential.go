package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"svcapi/shared/project"
)

func (a *app) credential() *cobra.Command {
	return group("credential", "Issue, rotate and revoke the credentials of projects",
		a.credentialIssue(), a.credentialRotate(), a.credentialRevoke())
}

// credentialView is a credential as programs read it. Nothing of a secret is in it.
type credentialView struct {
	ClientID    string              `json:"client_id"`
	Environment project.Environment `json:"environment"`
	Active      bool                `json:"active"`
	LiveSecrets int                 `json:"live_secrets"`
}

func viewCredentials(rec *project.Record) []credentialView {
	views := make([]credentialView, 0, len(rec.Credentials))
	for _, c := range rec.Credentials {
		views = append(views, credentialView{c.ClientID, c.Environment, c.Active, len(c.Secrets)})
	}
	return views
}

func credentialTable(views []credentialView) table {
	t := table{header: []string{"CLIENT ID", "ENVIRONMENT", "STATE", "LIVE SECRETS"}, empty: `No credentials. "svc credential issue" makes one.`}
	for _, v := range views {
		state := "revoked"
		if v.Active {
			state = "active"
		}
		t.rows = append(t.rows, []string{v.ClientID, string(v.Environment), state, strconv.Itoa(v.LiveSecrets)})
	}
	return t
}

// issued is the one showing of a client secret.
type issued struct {
	ProjectID    string              `json:"project_id"`
	Environment  project.Environment `json:"environment,omitempty"`
	ClientID     string              `json:"client_id"`
	ClientSecret string              `json:"client_secret"`
}

func (a *app) printIssued(i issued) error {
	rows := [][]string{{"Project", i.ProjectID}}
	if i.Environment != "" {
		rows = append(rows, []string{"Environment", string(i.Environment)})
	}
	rows = append(rows, []string{"Client ID", i.ClientID}, []string{"Client secret", i.ClientSecret})
	if err := a.print(i, table{rows: rows}); err != nil {
		return err
	}
	a.note("The secret is shown this once. Keep it now: only its digest is stored.")
	return nil
}

func (a *app) credentialIssue() *cobra.Command {
	var env string
	cmd := &cobra.Command{
		Use:     "issue PROJECT",
		Short:   "Make a new client ID and secret",
		Example: "  svc credential issue acme --env production",
		Args:    cobra.ExactArgs(1),
		RunE: a.on(func(ctx context.Context, s *stack, args []string) error {
			environment, err := parseEnvironment(env)
			if err != nil {
				return err
			}
			if _, err := s.load(ctx, args[0]); err != nil {
				return err
			}
			clientID, clientSecret, err := s.projects.IssueCredential(ctx, args[0], environment)
			if err != nil {
				return err
			}
			return a.printIssued(issued{args[0], environment, clientID, clientSecret})
		}),
	}
	cmd.Flags().StringVar(&env, "env", string(project.Development), "development or production")
	return cmd
}

func (a *app) credentialRotate() *cobra.Command {
	var finish, replace bool
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
		RunE: a.on(func(ctx context.Context, s *stack, args []string) error {
			clientID := args[0]
			if finish && replace {
				return &usageError{"give --finish or --replace, not both"}
			}
			if finish {
				if err := s.projects.FinishRotation(ctx, clientID); err != nil {
					return err
				}
				return a.printChanged(clientID, "one live secret, the newest")
			}
			clientSecret, err := s.projects.RotateCredential(ctx, clientID, replace)
			if err != nil {
				return err
			}
			projectID, _ := project.ParseClientID(clientID)
			return a.printIssued(issued{ProjectID: projectID, ClientID: clientID, ClientSecret: clientSecret})
		}),
	}
	cmd.Flags().BoolVar(&finish, "finish", false, "end all secrets but the newest; makes none")
	cmd.Flags().BoolVar(&replace, "replace", false, "of two live secrets, end the newer and make another in its place")
	return cmd
}

func (a *app) credentialRevoke() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "revoke CLIENT_ID",
		Short: "End a client ID and its secrets for good",
		Args:  cobra.ExactArgs(1),
		RunE: a.on(func(ctx context.Context, s *stack, args []string) error {
			question := fmt.Sprintf("Revoke %s on stage %s? Its requests will be refused, for good.", args[0], s.stage)
			if err := a.confirm(ctx, yes, question); err != nil {
				return err
			}
			if err := s.projects.RevokeCredential(ctx, args[0]); err != nil {
				return err
			}
			return a.printChanged(args[0], "revoked (functions follow within seconds)")
		}),
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

func (a *app) printChanged(clientID, state string) error {
	return a.print(
		struct {
			ClientID string `json:"client_id"`
			State    string `json:"state"`
		}{clientID, state},
		table{rows: [][]string{{"Client ID", clientID}, {"State", state}}})
}
