package acceptance

import (
	"cmp"
	"os"
	"os/exec"
	"testing"

	"svcapi/local/workdir"
	"svcapi/test/must"
)

// unfit are checks of Schemathesis that do not fit this API: rules of numbers, barcodes and codes go beyond what a
// schema says, so that a request which fits the schema may be refused; and null counts as absent, so that some which do
// not fit it are taken.
const unfit = "positive_data_acceptance,negative_data_rejection"

// Schemathesis runs openapi.yaml against the local stack: no server error, no undocumented status, no schema violation.
// Without API_EXAMPLES it sends the document's examples and two random requests for each operation; `make test-api`
// runs all phases with both kinds of projects.
func TestSchemathesis(t *testing.T) {
	local(t)
	t.Parallel()
	program, err := workdir.Installed(t.Context(), "schemathesis", "bin/schemathesis")
	must.Succeed(t, err)
	projects, phases := []string{"managed"}, "examples,fuzzing"
	if os.Getenv("API_EXAMPLES") != "" {
		projects, phases = []string{"managed", "byok"}, "examples,coverage,fuzzing,stateful"
	}
	for _, name := range projects {
		as := demoProject(name).dev
		cmd := exec.CommandContext(t.Context(), program, "run", inRoot(t, "openapi.yaml"), "--url", fixture.baseURL,
			"--header", "X-API-KEY: "+as.ID, "--header", "X-API-SECRET: "+as.Secret, "--header", "X-ENV: development",
			"--phases", phases, "--max-examples", cmp.Or(os.Getenv("API_EXAMPLES"),
				"2"), "--seed", cmp.Or(os.Getenv("API_SEED"), "1"),
			"--exclude-checks", unfit, "--request-timeout", "40", "--generation-database", "none", "--no-color", "--warnings", "off")
		cmd.Dir = t.TempDir()
		output, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", name, err, output)
			continue
		}
		t.Logf("%s: %s", name, output[max(0, len(output)-300):])
	}
}
