package acceptance

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"svcapi/local/demo"
	"svcapi/local/sandbox"
	"svcapi/local/template"
	"svcapi/shared/credit"
	"svcapi/shared/project"
	"svcapi/shared/secret"
)

// racers is how many requests a test of a limit sends at once, to several processes of each function.
const racers = 64

// race sends the requests of one test at once. Tests with a race run alone: a machine that is too busy loses so many
// responses of DynamoDB that requests fail.
func race(do func(i int) *response) []*response { return atOnce(racers, racers, do) }

// limits sets the limits of a project before its first request.
func (p *tenant) limits(t *testing.T, flags ...string) *tenant {
	t.Helper()
	svc[any](t, "", append([]string{"project", "limits", p.id}, flags...)...)
	return p
}

// counted counts the responses by status. A response that is neither a success nor the wanted refusal is an error.
func counted(t *testing.T, responses []*response, status int, code, message string) (succeeded, refused int) {
	t.Helper()
	for _, a := range responses {
		switch {
		case a == nil:
		case a.status == 200:
			succeeded++
		case !a.is(status, code) || !strings.Contains(a.Error.Message, message) || (a.header.Get("Retry-After") != "") != (status == 429):
			t.Errorf("%d %s, Retry-After %q; want %d %s: %s", a.status, a.body, a.header.Get("Retry-After"), status, code, message)
		default:
			refused++
		}
	}
	return succeeded, refused
}

// several checks that several processes of a function have served.
func several(t *testing.T, function string) {
	t.Helper()
	if n := len(fixture.stack.Processes(function)); n < 2 {
		t.Errorf("%d processes of %s, want several", n, function)
	}
}

// docs/decisions.md#recipient-limit: of 64 requests at once to one number exactly as many are sent as the limit
// permits, over both environments. In a bulk the recipients over their limit are not attempted, with the reason
// (openapi.yaml#SmsRecipientResult).
func TestRecipientLimit(t *testing.T) {
	local(t)
	p := plan{prod: true, integrations: []integration{
		{vendor: "twilio", mode: project.BYOK}, {vendor: "twilio", mode: project.BYOK, env: project.Production},
	}}.make(t).limits(t, "--per-recipient", "7/12h,30/24h")
	to, other := number(), number()
	ask := func(i int) *response {
		r := request{path: send, body: single([]string{to, "+94" + to[1:]}[i%2], "m"), as: p.dev}
		if i%3 == 0 {
			r.as, r.header = p.prod, map[string]string{"X-ENV": "prod"}
		}
		return r.do(t)
	}
	succeeded, refused := counted(t, race(ask), 429, "rate_limit_exceeded", "limit of 7 messages to one number in 12 hours")
	several(t, "SmsFunction")
	if n := len(sent(to)); succeeded != 7 || refused != racers-7 || n != 7 {
		t.Errorf("%d requests succeeded, %d were refused, %d messages were sent; want 7", succeeded, refused, n)
	}
	if a := (request{path: send, body: bulkSame([]string{to, other}, "m"), as: p.dev}).do(t); a != nil {
		a.has(t, "bulk", `"status":"not_attempted","id":"","vendor":"","units":1,"reason":"recipient_limit"`, `"status":"partial"`, `"message_count":1`)
	}
}

// docs/decisions.md#daily-limit: of 64 requests at once, over two operations, exactly as many are charged
// as the day's credits suffice for. The operator is alerted once.
func TestDailyCredits(t *testing.T) {
	local(t)
	unit := price(credit.Barcode)
	p := plan{credits: 1_000_000}.make(t).drawing(t, project.Managed).
		limits(t, "--daily-credits", fmt.Sprint(20*unit))
	ask := func(i int) *response {
		return request{path: []string{barcodes, qrcodes}[i%2], body: `{"data":"12345"}`, as: p.dev}.send(t)
	}
	ends := "which ends at " + time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, 1).Format(time.RFC3339)
	succeeded, refused := counted(t, race(ask), 402, "insufficient_funds", "daily limit of "+credit.Grouped(20*unit)+" credits, "+ends)
	several(t, "BarcodeFunction")
	p.alerted(t, "BarcodeFunction", 1)
	if got := p.balance(t); succeeded != 20 || refused != racers-20 || got != 1_000_000-20*unit {
		t.Errorf("%d requests succeeded, %d were refused, balance %d; want 20", succeeded, refused, got)
	}
	// The operator raises the limit: what the day has counted stays counted.
	p.limits(t, "--daily-credits", fmt.Sprint(23*unit))
	forget()
	succeeded, _ = counted(t, race(ask), 402, "insufficient_funds", "daily limit")
	p.alerted(t, "BarcodeFunction", 2)
	if succeeded != 3 {
		t.Errorf("%d requests more succeeded, want 3", succeeded)
	}
}

// idle waits until a function has ended its work after its responses.
func idle(t *testing.T, function string) {
	t.Helper()
	if err := fixture.stack.AwaitIdle(t.Context(), function); err != nil {
		t.Fatal(err)
	}
}

// alerted checks how often the log says that the project is near a daily limit. The line follows the response.
func (p *tenant) alerted(t *testing.T, function string, want int) {
	t.Helper()
	idle(t, function)
	lines := 0
	for _, file := range logLines(t, fixture.stack.LogDir, "daily limit is near") {
		for _, line := range file {
			if strings.Contains(line, strconv.Quote(p.id)) {
				lines++
			}
		}
	}
	if lines != want {
		t.Errorf("%d alerts, want %d", lines, want)
	}
}

// openapi.yaml#InsufficientFunds: the playground shows why a limit refused a request.
func TestPlaygroundShowsRefusals(t *testing.T) {
	local(t)
	t.Parallel()
	p := plan{credits: 1_000_000, integrations: []integration{{vendor: "twilio", mode: project.Managed}}}.make(t).drawing(t, project.Managed).
		limits(t, "--daily-credits", "50")
	v := newTab(t, newBrowser(t), 1280, 900)
	openDocs(t, v, "")
	v.enter(t, p.dev)
	playground := v.operation(t, "generateBarcode")
	got := v.send(t, playground)
	shown := v.eval(t, `selector => document.querySelector(selector + " dl").textContent`, playground)
	if !strings.HasPrefix(got, "402") || !strings.Contains(shown, "the project's daily limit of 50 credits, which ends at ") {
		t.Errorf("%s: %s", got, shown)
	}
}

// limited returns a project of the second stack with all limits, which no test reaches but by recipient.
func (n *oneProcess) limited(t *testing.T, mode project.Mode) *tenant {
	t.Helper()
	store, name := project.NewStore(n.db, n.table("projects")), "limited-"+string(mode)
	model, err := store.Load(t.Context(), demo.ID(string(mode)))
	if err != nil {
		t.Fatal(err)
	}
	_, err = store.CreateProject(t.Context(), project.Project{
		ID: name, Name: name, Limit: model.Limit,
		Limits: project.Limits{
			Recipients:   []project.RecipientLimit{{Messages: 4, Window: 12 * time.Hour}, {Messages: 9, Window: 24 * time.Hour}},
			DailyCredits: 1_000_000_000, DailyUnits: 1_000_000_000,
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	vault := secret.NewWriter(secretsmanager.New(secretsmanager.Options{
		Region: template.Region, BaseEndpoint: &n.stack.SecretsURL, Credentials: credentials.NewStaticCredentialsProvider("local", "local", ""),
	}), oneProcessStage)
	for _, i := range model.Active(project.SMS, project.Development) {
		if err = vault.Put(t.Context(), project.SMS, name, secret.Change{Environment: project.Development, Vendor: i.Vendor, After: sandbox.Accounts[i.Vendor]}); err != nil {
			t.Fatal(err)
		}
	}
	for _, i := range model.Integrations {
		if err := store.PutIntegration(t.Context(), name, i); err != nil {
			t.Fatal(err)
		}
	}
	if err = n.ledger.CreateWallet(t.Context(), name); err == nil {
		err = n.ledger.Grant(t.Context(), credit.Movement{Project: name, ID: credit.NewKey(time.Now(), name), Credits: 1_000_000, Reason: "test", Actor: "test"})
	}
	if err != nil {
		t.Fatal(err)
	}
	clientID, clientSecret, err := store.IssueCredential(t.Context(), name, project.Development)
	if err != nil {
		t.Fatal(err)
	}
	return &tenant{id: name, dev: remember(credential{clientID, clientSecret})}
}
