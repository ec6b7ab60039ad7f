// Package doctor holds the command "svc doctor".
package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"svcapi/cmd/svc/app"
	"svcapi/shared/project"
)

// Command returns "svc doctor".
func Command(a *app.App) *cobra.Command {
	var only string
	var probe, all bool
	cmd := a.Command(&cobra.Command{
		Use:   "doctor",
		Short: "Check a stage end to end and report problems",
		Long: `Check a stage end to end, report problems and advise what to do: sign-in, clock,
tables, secrets, the API itself, and each project's credentials, integrations
and credits. The command changes nothing; with --probe it makes a request with a
credential that it issues and revokes.

Exit code 1 means that something is broken. Warnings alone have exit code 0.`,
		Example: `  svc doctor --stage prod
  svc doctor --local --project acme --probe`,
	}, nil, func(ctx context.Context, s *app.Stack) error {
		if probe && only == "" {
			return app.Usagef("--probe needs --project")
		}
		d := &Diagnosis{Stack: s, Only: only, probe: probe, Pause: probePause}
		return d.run(ctx, all)
	})
	cmd.Flags().StringVar(&only, "project", "", "check this project alone")
	cmd.Flags().BoolVar(&probe, "probe", false, "also make a request")
	cmd.Flags().BoolVar(&all, "all", false, "also show checks without a problem")
	return cmd
}

func (d *Diagnosis) run(ctx context.Context, all bool) error {
	step := d.Progress("checking", len(checks))
	for _, check := range checks {
		check(d, ctx)
		if err := ctx.Err(); err != nil {
			return err
		}
		step()
	}
	intended := d.intended()
	err := d.PrintFindings(d.Found, all)
	if intended > 0 {
		d.Note("%d of those in order are faults that the demo has on purpose; --all shows them.", intended)
	}
	return err
}

// intended takes the advice from findings that the local stack's demo has on purpose, and returns their number.
func (d *Diagnosis) intended() (n int) {
	for i := range d.Found {
		f := &d.Found[i]
		id, _, _ := strings.Cut(f.Subject, " ")
		if slices.ContainsFunc(d.Intended, func(fault app.Fault) bool {
			return id == fault.Project && f.Check == fault.Check && strings.Contains(f.Detail, fault.Detail)
		}) {
			n++
			f.Severity, f.Detail, f.Advice = app.OK, f.Detail+": a fault that the demo has on purpose", ""
		}
	}
	return n
}

// Diagnosis is one run of doctor.
type Diagnosis struct {
	*app.Stack
	app.Findings
	Only  string // the only project to check; empty for all projects
	probe bool
	// Pause is the time between the probe's attempts.
	Pause             time.Duration
	noTables, noVault bool // later checks skip what cannot be reached

	rights map[string]bool // the origination identities that were checked
	limits *app.CloudStack // the stage's own limits
}

// checks are in the order of their run, because later checks depend on earlier ones.
var checks = []func(*Diagnosis, context.Context){
	(*Diagnosis).identity, (*Diagnosis).tables, (*Diagnosis).vaultAccess, (*Diagnosis).gateway,
	(*Diagnosis).managedSecrets,
	(*Diagnosis).exchangeRates, (*Diagnosis).renderer, (*Diagnosis).projects,
}

func (d *Diagnosis) identity(ctx context.Context) {
	actor, err := d.Actor(ctx)
	d.AddIf(!d.Failed("identity", "", err), app.OK, "identity", actor, "", "")
}

// gatewayTimeout bounds a request to the API, with a cold start.
const gatewayTimeout = 30 * time.Second

// response holds the fields of an API response that doctor uses.
type response struct {
	status    int
	requestID string
	Error     struct{ Code string }
}

func (d *Diagnosis) request(ctx context.Context, url, clientID, clientSecret string) (response, error) {
	ctx, cancel := context.WithTimeout(ctx, gatewayTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader("{}"))
	if err != nil {
		return response{}, err
	}
	r.Header.Set("X-API-KEY", clientID)
	r.Header.Set("X-API-SECRET", clientSecret)
	out, err := (&http.Client{}).Do(r) // the stack itself, no vendor
	if err != nil {
		return response{}, err
	}
	defer func() { _ = out.Body.Close() }()
	a := response{status: out.StatusCode, requestID: out.Header.Get("X-SVC-Request-ID")}
	if json.NewDecoder(io.LimitReader(out.Body, 1<<20)).Decode(&a) != nil || a.requestID == "" {
		return a, fmt.Errorf("HTTP %d, which is not a response of the API", out.StatusCode)
	}
	return a, nil
}

// balancePath is an operation without a price.
const balancePath = "/sms/balance"

// gateway makes a request without valid credentials: a 401 proves that the gateway, the function and the table work.
func (d *Diagnosis) gateway(ctx context.Context) {
	known, err := d.Deployed(ctx)
	if d.Failed("stack", d.StackName(), err) {
		return
	}
	if known.BaseURL == "" {
		d.Add(app.Broken, "stack", d.StackName(), "the stack does not name its base URL",
			"aws cloudformation describe-stacks --region "+d.AWS.Region+
				" --query 'Stacks[?Outputs[?OutputKey==`BaseUrl`]].StackName'")
		return
	}
	a, err := d.request(ctx, known.BaseURL+balancePath, "svc_doctor_aaaaaaaa", "svcs_none")
	switch {
	case err != nil:
		d.Add(app.Broken, "gateway", known.BaseURL, err.Error(),
			"Is the stack deployed, and does the base URL belong to it? A web ACL or the DNS may block the request.")
	case a.status != http.StatusUnauthorized:
		d.Add(app.Broken, "gateway", known.BaseURL,
			fmt.Sprintf("HTTP %d %s without credentials, not 401", a.status, a.Error.Code), d.Line("logs %s", a.requestID))
	default:
		d.Add(app.OK, "gateway", known.BaseURL, "", "")
	}
	if d.probe && err == nil {
		d.Probe(ctx, known.BaseURL)
	}
}

const (
	// probePause exceeds the time without a new credential (docs/decisions/requests.md#project-records).
	probePause = 1500 * time.Millisecond
	// ProbeAttempts last longer than the ten seconds for which functions cache a record.
	ProbeAttempts = 8
)

// requestNew makes a request with a new credential, and repeats the request while a function may not know the
// credential.
func (d *Diagnosis) requestNew(ctx context.Context, url, clientID, clientSecret string) (response, error) {
	for attempt := 1; ; attempt++ {
		a, err := d.request(ctx, url, clientID, clientSecret)
		if err != nil || a.status != http.StatusUnauthorized || attempt == ProbeAttempts {
			return a, err
		}
		select {
		case <-ctx.Done():
			return a, ctx.Err()
		case <-time.After(d.Pause):
		}
	}
}

// Probe makes a request with a credential that Probe issues and revokes.
func (d *Diagnosis) Probe(ctx context.Context, baseURL string) {
	clientID, clientSecret, err := d.Projects.IssueCredential(ctx, d.Only, project.Development)
	if d.Failed("probe", d.Only, err) {
		return
	}
	a, err := d.requestNew(ctx, baseURL+balancePath, clientID, clientSecret)
	d.Failed("probe", clientID, d.Projects.RevokeCredential(context.WithoutCancel(ctx), clientID))
	switch {
	case err != nil:
		d.Add(app.Broken, "probe", d.Only, err.Error(), d.Line("doctor"))
	case a.status == http.StatusUnauthorized || a.status == http.StatusInternalServerError:
		d.Add(app.Broken, "probe", d.Only, fmt.Sprintf("HTTP %d %s with a valid credential", a.status, a.Error.Code),
			d.Line("logs %s", a.requestID))
	default:
		d.Add(app.OK, "probe", d.Only, fmt.Sprintf("HTTP %d %s", a.status, a.Error.Code), "")
	}
}
