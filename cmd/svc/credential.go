package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"svcapi/cmd/svc/app"
	"svcapi/shared/project"
	"svcapi/shared/project/admin"
)

// credentialView is a credential without its secrets, in the format for programs.
type credentialView struct {
	ClientID    string              `json:"client_id"`
	Environment project.Environment `json:"environment"`
	Active      bool                `json:"active"`
	LiveSecrets int                 `json:"live_secrets"`
}

// listCredentials prints a project's credentials.
func listCredentials(_ context.Context, s *app.Stack, rec *project.Record) error {
	views, table := viewCredentials(rec)
	return s.Print(views, table)
}

// viewCredentials returns a project's credentials for programs and for people.
func viewCredentials(rec *project.Record) ([]credentialView, app.Table) {
	views := make([]credentialView, len(rec.Credentials))
	for i, c := range rec.Credentials {
		views[i] = credentialView{c.ClientID, c.Environment, c.Active, len(c.Secrets)}
	}
	const header = "CLIENT ID, ENVIRONMENT, STATE, LIVE SECRETS"
	const empty = `No credentials. "svc credential issue" creates one.`
	return views, app.TableOf(header, empty, views, func(v credentialView) []string {
		state := map[bool]string{true: "active", false: "revoked"}[v.Active]
		return []string{v.ClientID, string(v.Environment), state, strconv.Itoa(v.LiveSecrets)}
	})
}

// issuedSecret holds a new client secret, which svc shows once.
type issuedSecret struct {
	ProjectID    string              `json:"project_id"`
	Environment  project.Environment `json:"environment,omitempty"`
	ClientID     string              `json:"client_id"`
	ClientSecret string              `json:"client_secret"`
}

func printIssued(s *app.Stack, request func(issuedSecret) string, issued ...issuedSecret) error {
	var tables []app.Table
	for _, i := range issued {
		rows := app.Rows("Project", i.ProjectID, "Client ID", i.ClientID, "Client secret", i.ClientSecret)
		if i.Environment != "" {
			rows = slices.Insert(rows, 1, []string{"Environment", string(i.Environment)})
		}
		if request != nil && !s.JSON() {
			rows = append(rows, []string{"Request", request(i)})
		}
		tables = append(tables, app.Table{Rows: rows})
	}
	if err := s.Print(app.OneOrAll(issued), tables...); err != nil {
		return err
	}
	s.Note("The secret is shown this once. Store it now: the service keeps only its digest.")
	return nil
}

// printState prints the new state of a client ID, or returns the error of the change.
func printState(s *app.Stack, clientID, state string, err error) error {
	if err != nil {
		return err
	}
	return s.PrintRows(map[string]any{"client_id": clientID, "state": state}, "Client ID", clientID, "State", state)
}

func issueCredential(a *app.App) *cobra.Command {
	var envs []project.Environment
	cmd := a.ProjectCommand("issue PROJECT", nil, func(ctx context.Context, s *app.Stack, rec *project.Record) error {
		var added []project.Credential // in one transaction: svc shows all secrets or none
		var issued []issuedSecret
		for _, env := range envs {
			c, clientSecret := admin.NewCredential(rec.ID, env)
			added, issued = append(added, c), append(issued, issuedSecret{rec.ID, env, c.ClientID, clientSecret})
		}
		if err := s.Projects.AddCredential(ctx, rec.ID, added...); err != nil {
			return err
		}
		return printIssued(s, func(i issuedSecret) string { return firstRequest(ctx, s, rec, i) }, issued...)
	})
	app.EnvironmentFlag(cmd, &envs, "development", true)
	return cmd
}

// firstRequests are a method, a path and a body of each kind, the most convenient first request first.
var firstRequests = []struct {
	kind project.Kind
	call string
}{
	{project.Barcode, `-o barcode.png '%s/utilities/barcode/generate' -d '{"data":"481516"}'`},
	{project.SMS, `'%s/sms/balance' -d '{}'`},
	{project.Security, `'%s/security/vpn-shield' -d '{"ip":"112.134.0.1"}'`},
	{project.Location, `'%s/location/lookup' -d '{"ip":"112.134.0.1"}'`},
	{project.PDF, `-o page.pdf '%s/utilities/pdf/generate' -d '{"html":"<h1>Hello</h1>"}'`},
	{project.Currency, `'%s/utility/currency/codes'`},
}

// firstRequest returns a request with the new credential that the project's integrations can carry out, for a shell.
func firstRequest(ctx context.Context, s *app.Stack, rec *project.Record, i issuedSecret) string {
	baseURL, _, err := s.Deployed(ctx)
	if err != nil || baseURL == "" {
		baseURL = "BASE_URL" // the operator may issue credentials without the right to read the stack
	}
	call := firstRequests[0].call
	for _, r := range slices.Backward(firstRequests) {
		if len(rec.Active(r.kind, i.Environment)) > 0 {
			call = r.call
		}
	}
	return fmt.Sprintf("curl -sS -H 'X-API-KEY: %s' -H 'X-API-SECRET: %s' -H 'X-ENV: %s' "+call, i.ClientID,
		i.ClientSecret, i.Environment, baseURL)
}

func parseClientID(into *string) func(args []string) error {
	return func(args []string) error {
		if _, ok := project.ParseClientID(args[0]); !ok {
			return app.Usagef(`%q is no client ID of "svc credential list"; "svc vendor account" rotates the key of a vendor`,
				args[0])
		}
		*into = args[0]
		return nil
	}
}

func rotateCredential(a *app.App) *cobra.Command {
	var clientID string
	var finish, replace bool
	cmd := a.Command("rotate CLIENT_ID", func(args []string) error {
		if finish && replace {
			return app.Usagef("give --finish or --replace, not both")
		}
		return parseClientID(&clientID)(args)
	}, func(ctx context.Context, s *app.Stack) error {
		if finish {
			return printState(s, clientID, "one live secret, the newest", s.Projects.FinishRotation(ctx, clientID))
		}
		clientSecret, err := s.Projects.RotateCredential(ctx, clientID, replace)
		if err != nil {
			return err
		}
		projectID, _ := project.ParseClientID(clientID)
		return printIssued(s, nil, issuedSecret{ProjectID: projectID, ClientID: clientID, ClientSecret: clientSecret})
	})
	cmd.Flags().BoolVar(&finish, "finish", false, "end all secrets but the newest, and create none")
	cmd.Flags().BoolVar(&replace, "replace", false, "replace the newer of two live secrets")
	return cmd
}

func revokeCredential(a *app.App) *cobra.Command {
	var clientID string
	var yes bool
	cmd := a.Command("revoke CLIENT_ID", parseClientID(&clientID), func(ctx context.Context, s *app.Stack) error {
		question := fmt.Sprintf("Revoke %s on stage %s? Its requests will be refused permanently.", clientID, s.Stage)
		if err := s.Confirm(ctx, yes, question); err != nil {
			return err
		}
		return printState(s, clientID, "revoked (functions follow within seconds)",
			s.Projects.RevokeCredential(ctx, clientID))
	})
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}
