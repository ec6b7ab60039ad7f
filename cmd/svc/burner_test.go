package main

import (
	"slices"
	"testing"

	"svcapi/cmd/svc/app"
)

// TestBurner: svc normalises a project's own disposable domains as the operation does.
func TestBurner(t *testing.T) {
	f := newFixture(t)
	file := f.write("# ours\n\nfile.example\r\n  Other.Example  # twice\nother.example\n")
	f.runAll([]call{
		{args: "project create Acme --id acme"},
		{args: "burner list acme", out: []string{"The project has no own domains"}},
		{args: "burner add nobody a.example", exit: app.ExitNotFound},
		{args: "burner add acme", exit: app.ExitUsage},
		{args: "burner add acme example", exit: app.ExitUsage, errs: []string{`"example" is not a domain`, "two labels"}},
		{args: "burner add acme a.example me@b.example", exit: app.ExitUsage, errs: []string{`"me@b.example" is not a domain`}},
		{args: "burner add acme B.Example a.example bücher.example a.example", out: []string{`a.example +added\nb.example +added\nxn--bcher-kva.example +added\n`}},
		{args: "burner add acme a.example", out: []string{`a.example +there already`}},
		{args: "burner add acme c.example a.example --output json", out: []string{`"domains": \[\n +"c.example"\n +\],\n +"unchanged": \[\n +"a.example"\n +\]`}},
		{args: "burner remove acme c.example"},
		{args: "burner add acme *.x.example", exit: app.ExitUsage, errs: []string{`write x.example, which includes its subdomains`}},
		{args: "burner list acme", out: []string{`DOMAIN\na.example\nb.example\nxn--bcher-kva.example\n`}},
		{args: "burner remove acme B.EXAMPLE never.example", out: []string{`b.example +removed\nnever.example +not on the list`}},
		{args: "burner list acme", out: []string{`DOMAIN\na.example\nxn--bcher-kva.example\n`}},
		{args: "burner import acme " + file, out: []string{`file.example +added\nother.example +added\n`}},
		{args: "burner import acme -", stdin: "good.example\n\nbad domain\n", exit: app.ExitUsage, errs: []string{"line 3:", `"bad domain" is not a domain`}},
		{args: "burner import acme -", stdin: "# none\n", out: []string{"Nothing was changed"}},
		{args: "burner import acme /nowhere", exit: app.ExitUsage, errs: []string{"no such file"}},
	})
	got := decode[struct {
		ProjectID string   `json:"project_id"`
		Domains   []string `json:"domains"`
	}](f, "burner list acme")
	if want := []string{"a.example", "file.example", "other.example", "xn--bcher-kva.example"}; !slices.Equal(got.Domains, want) {
		t.Errorf("%s has %v", got.ProjectID, got.Domains)
	}
}
