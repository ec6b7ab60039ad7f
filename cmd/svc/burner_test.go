package main

import (
	"slices"
	"testing"
	"time"

	"svcapi/cmd/svc/app"
	"svcapi/local/engine"
	"svcapi/shared/burner"
	"svcapi/test/enginetest"
)

// TestBurner: svc normalises a project's own disposable domains as the operation does.
func TestBurner(t *testing.T) {
	f := newFixture(t)
	file := f.write("# ours\n\nfile.example\r\n  Other.Example  # twice\nother.example\n")
	f.runAll([]call{
		{args: "project create Acme --id acme"},
		{args: "burner list acme", out: []string{"The project has no own domains"}},
		{args: "burner add nobody a.example", exit: app.ExitNotFound},
		{args: "burner add acme example", exit: app.ExitUsage, errs: []string{`"example" is not a domain`, "two labels"}},
		{args: "burner add acme a.example me@b.example", exit: app.ExitUsage,
			errs: []string{`"me@b.example" is not a domain`}},
		{args: "burner add acme B.Example a.example bücher.example a.example",
			out: []string{`a.example +added\nb.example +added\nxn--bcher-kva.example +added\n`}},
		{args: "burner add acme a.example", out: []string{`a.example +there already`}},
		{args: "burner add acme c.example a.example --output json",
			out: []string{`"domains": \[\n +"c.example"\n +\],\n +"unchanged": \[\n +"a.example"\n +\]`}},
		{args: "burner remove acme c.example"},
		{args: "burner add acme *.x.example", exit: app.ExitUsage,
			errs: []string{`write x.example, which includes its subdomains`}},
		{args: "burner list acme", out: []string{`DOMAIN +IS\na.example +disposable\nb.example ` +
			`+disposable\nxn--bcher-kva.example +disposable\n`}},
		{args: "burner remove acme B.EXAMPLE never.example",
			out: []string{`b.example +removed\nnever.example +not on the list`}},
		{args: "burner list acme", out: []string{`DOMAIN +IS\na.example +disposable\nxn--bcher-kva.example +disposable\n`}},
		{args: "burner import acme " + file, out: []string{`file.example +added\nother.example +added\n`}},
		{args: "burner import acme -", stdin: "good.example\n\nbad domain\n", exit: app.ExitUsage,
			errs: []string{"line 3:", `"bad domain" is not a domain`}},
		{args: "burner import acme -", stdin: "# none\n", out: []string{"Nothing was changed"}},
		{args: "burner list", out: []string{"No domain is allowed for the stage"}},
		{args: "burner list nobody", exit: app.ExitNotFound},
		{args: "burner allow a.example --project nobody", exit: app.ExitNotFound},
		{args: "burner allow a.example --project=", exit: app.ExitNotFound},
		{args: "burner allow a.example x.example", out: []string{`a.example +allowed\nx.example +allowed\n`}},
		{args: "burner list", out: []string{`a.example +allowed\nx.example +allowed\n`}},
		{args: "burner deny a.example b.example", out: []string{`a.example +denied\nb.example +not allowed before\n`}},
		{args: "burner list --output json",
			out: []string{`"project_id": "",\n +"domains": \[\],\n +"allowed": \[\n +"x.example"\n`}},
		// A project's domain has one judgement: the last.
		{args: "burner allow Xn--Bcher-Kva.example y.example --project acme",
			out: []string{`xn--bcher-kva.example +allowed\ny.example +allowed\n`}},
		{args: "burner allow y.example --project acme", out: []string{`y.example +allowed already\n`}},
		{args: "burner remove acme y.example", out: []string{`y.example +not on the list`}},
		{args: "burner deny a.example --project acme", out: []string{`a.example +not allowed before`}},
		{args: "burner add acme xn--bcher-kva.example", out: []string{`xn--bcher-kva.example +added`}},
		{args: "burner list acme", out: []string{`xn--bcher-kva.example +disposable\ny.example +allowed\n`}},
		{args: "burner import acme /nowhere", exit: app.ExitUsage, errs: []string{"no such file"}},
	})
	f.runAll([]call{{args: "burner status", out: []string{"The published lists were not fetched yet"}}})
	judged := burner.NewStore(engine.Client(enginetest.URL(t)), "svc-"+f.stage+"-projects")
	f.must(judged.PutDifference(t.Context(), burner.Difference{Outcome: burner.Outcome{
		Fetched: time.Now().Add(-50 * time.Hour), Tried: time.Now(), Failure: "status 404",
		Sources: map[string]int{"https://a.example/list": 1200},
		Domains: 151_000, Added: 30, Removed: 152,
	}}))
	f.runAll([]call{{args: "burner status", out: []string{
		`Age +50h0m0s`, `Failure +status 404\nDomains +151,000\nAdded +30\nRemoved +152\n\nSOURCE ` +
			`+DOMAINS\nhttps://a.example/list +1,200`,
	}}})
	got := decode[struct {
		ProjectID string   `json:"project_id"`
		Domains   []string `json:"domains"`
		Allowed   []string `json:"allowed"`
	}](f, "burner list acme")
	if want := []string{"a.example", "file.example", "other.example", "xn--bcher-kva.example"}; !slices.Equal(got.Domains,
		want) || !slices.Equal(got.Allowed, []string{"y.example"}) {
		t.Errorf("%+v", got)
	}
}
