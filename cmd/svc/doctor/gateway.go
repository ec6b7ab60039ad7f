package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"svcapi/cmd/svc/app"
	"svcapi/shared/project"
)

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
	if err != nil {
		d.Fail("stack", d.StackName(), err)
		return
	}
	if known.BaseURL == "" {
		d.Add(app.Broken, "stack", d.StackName(), "the stack does not name its base URL", "aws cloudformation describe-stacks --region "+d.AWS.Region+" --query 'Stacks[?Outputs[?OutputKey==`BaseUrl`]].StackName'")
		return
	}
	a, err := d.request(ctx, known.BaseURL+balancePath, "svc_doctor_aaaaaaaa", "svcs_none")
	switch {
	case err != nil:
		d.Add(app.Broken, "gateway", known.BaseURL, err.Error(), "Is the stack deployed, and does the base URL belong to it? A web ACL or the DNS may block the request.")
	case a.status != http.StatusUnauthorized:
		d.Add(app.Broken, "gateway", known.BaseURL, fmt.Sprintf("HTTP %d %s without credentials, not 401", a.status, a.Error.Code), d.Line("logs %s", a.requestID))
	default:
		d.Add(app.OK, "gateway", known.BaseURL, "", "")
	}
	if d.probe && err == nil {
		d.Probe(ctx, known.BaseURL)
	}
}

const (
	// probePause exceeds the second for which a function may refuse a new credential (docs/decisions.md#project-records).
	probePause = 1500 * time.Millisecond
	// ProbeAttempts last longer than the ten seconds for which functions cache a record.
	ProbeAttempts = 8
)

// requestNew makes a request with a new credential, and repeats the request while a function may not know the credential.
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
	if err != nil {
		d.Fail("probe", d.Only, err)
		return
	}
	a, err := d.requestNew(ctx, baseURL+balancePath, clientID, clientSecret)
	if revokeErr := d.Projects.RevokeCredential(context.WithoutCancel(ctx), clientID); revokeErr != nil {
		d.Fail("probe", clientID, revokeErr)
	}
	switch {
	case err != nil:
		d.Add(app.Broken, "probe", d.Only, err.Error(), d.Line("doctor"))
	case a.status == http.StatusUnauthorized || a.status == http.StatusInternalServerError:
		d.Add(app.Broken, "probe", d.Only, fmt.Sprintf("HTTP %d %s with a valid credential", a.status, a.Error.Code), d.Line("logs %s", a.requestID))
	default:
		d.Add(app.OK, "probe", d.Only, fmt.Sprintf("HTTP %d %s", a.status, a.Error.Code), "")
	}
}
