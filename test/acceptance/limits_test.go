package acceptance

import (
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

// limits sets the limits of a project before its first request.
func (p *tenant) limits(t *testing.T, flags ...string) *tenant {
	t.Helper()
	svc[any](t, "", append([]string{"project", "limits", p.id}, flags...)...)
	return p
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
