package doctor

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"svcapi/shared/project"
)

// gatewayPatience is what the API is given to answer, a cold start included.
const gatewayPatience = 30 * time.Second

// answered is what the API said.
type answered struct {
	status int
	Error  struct{ Code string }
}

func (d *Diagnosis) ask(ctx context.Context, url string, header map[string]string) (answered, error) {
	ctx, cancel := context.WithTimeout(ctx, gatewayPatience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader([]byte("{}")))
	if err != nil {
		return answered{}, err
	}
	for name, value := range header {
		r.Header.Set(name, value)
	}
	out, err := (&http.Client{}).Do(r) // the stack itself, no vendor
	if err != nil {
		return answered{}, err
	}
	defer func() { _ = out.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(out.Body, 1<<20))
	if err != nil {
		return answered{}, err
	}
	a := answered{status: out.StatusCode}
	if json.Unmarshal(body, &a) != nil || out.Header.Get("X-SVC-Request-ID") == "" {
		return a, fmt.Errorf("HTTP %d, which is no answer of the product", out.StatusCode)
	}
	return a, nil
}

// balancePath is an operation that costs nothing.
const balancePath = "/sms/balance"

// gateway asks without credentials: gateway, function and its reading of projects have to work for a 401.
func (d *Diagnosis) gateway(ctx context.Context) {
	known, err := d.Deployed(ctx)
	if err != nil {
		d.fail("stack", "svc-"+d.Stage, err)
		return
	}
	if known.BaseURL == "" {
		d.add(Broken, "stack", "svc-"+d.Stage, "the stack does not name its base URL", "Is it a stack of this product? --stack names another.")
		return
	}
	key := map[string]string{"X-API-KEY": "svc_doctor_aaaaaaaa", "X-API-SECRET": "svcs_none"}
	a, err := d.ask(ctx, known.BaseURL+balancePath, key)
	switch {
	case err != nil:
		d.add(Broken, "gateway", known.BaseURL, err.Error(), "Is the stack deployed, and the base URL its own? A web ACL or the DNS may stand before it.")
	case a.status != http.StatusUnauthorized:
		d.add(Broken, "gateway", known.BaseURL, fmt.Sprintf("HTTP %d %s without credentials, not 401", a.status, a.Error.Code), "The SMS function fails: its log group says why.")
	default:
		d.add(Fine, "gateway", known.BaseURL, "", "")
	}
	if d.probe && err == nil {
		d.Probe(ctx, known.BaseURL)
	}
}

const (
	// probePause is longer than the second for which a function refuses a new credential by a record it has just read.
	probePause = 1500 * time.Millisecond
	// ProbeAttempts last longer than functions keep a record, ten seconds.
	ProbeAttempts = 8
)

// askNew asks with a new credential, again while a function may not know it yet.
func (d *Diagnosis) askNew(ctx context.Context, url string, header map[string]string) (a answered, err error) {
	for attempt := 1; ; attempt++ {
		a, err = d.ask(ctx, url, header)
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

// Probe asks with a credential that Probe makes and ends.
func (d *Diagnosis) Probe(ctx context.Context, baseURL string) {
	clientID, clientSecret, err := d.Projects.IssueCredential(ctx, d.Only, project.Development)
	if err != nil {
		d.fail("probe", d.Only, err)
		return
	}
	a, err := d.askNew(ctx, baseURL+balancePath, map[string]string{"X-API-KEY": clientID, "X-API-SECRET": clientSecret})
	if ended := d.Projects.RevokeCredential(context.WithoutCancel(ctx), clientID); ended != nil {
		d.fail("probe", clientID, ended)
	}
	switch {
	case err != nil:
		d.add(Broken, "probe", d.Only, err.Error(), "")
	case a.status == http.StatusUnauthorized || a.status == http.StatusInternalServerError:
		d.add(Broken, "probe", d.Only, fmt.Sprintf("HTTP %d %s with a good credential", a.status, a.Error.Code), "Do functions and svc work on the same stage? The SMS function's log group says more.")
	default:
		d.add(Fine, "probe", d.Only, fmt.Sprintf("HTTP %d %s", a.status, a.Error.Code), "")
	}
}
