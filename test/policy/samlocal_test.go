package policy

import (
	"bytes"
	"encoding/json"
	"maps"
	"os/exec"
	"strings"
	"testing"

	"svcapi/local/stack"
	"svcapi/local/template"
)

// samEnvironment is what sam local invoke would give each function with these parameter overrides, by SAM's own
// providers.
func samEnvironment(t *testing.T, overrides map[string]string) map[string]map[string]string {
	t.Helper()
	args := []string{"tools/environment.py", "template.yaml"}
	for name, value := range overrides {
		args = append(args, name+"="+value)
	}
	cmd := exec.CommandContext(t.Context(), ".local/venv/bin/python", args...)
	cmd.Dir = root()
	var failure bytes.Buffer
	cmd.Stderr = &failure
	output, err := cmd.Output()
	if err != nil {
		t.Fatalf("SAM's providers (make policy installs them): %v\n%s", err, failure.String())
	}
	var out map[string]map[string]string
	if err := json.Unmarshal(output, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// sam local invoke reaches the local stack: with the same overrides a function has the same variables as in the local
// stack, table names and endpoints included.
func TestSAMLocalReachesTheLocalStack(t *testing.T) {
	for name, overrides := range map[string]map[string]string{
		"defaults": {},
		// What make run prints.
		"a running stack": stack.Addresses{
			DynamoDBURL: "http://127.0.0.1:18000", SecretsURL: "http://127.0.0.1:19000",
			SandboxURL: "http://127.0.0.1:20000", LambdaURL: "http://127.0.0.1:21000",
		}.Overrides(),
	} {
		t.Run(name, func(t *testing.T) {
			local, err := template.Load(overrides)
			if err != nil {
				t.Fatal(err)
			}
			environments := samEnvironment(t, overrides)
			if len(environments) != len(local.Functions) {
				t.Errorf("SAM finds %d functions, the local stack %d", len(environments), len(local.Functions))
			}
			for _, function := range local.Functions {
				got := declared(environments[function.LogicalID], function.Environment)
				if !maps.Equal(got, function.Environment) {
					t.Errorf("%s: sam local gives\n%v\nthe local stack gives\n%v", function.LogicalID, got, function.Environment)
				}
				for variable, value := range got {
					if function.LogicalID == rendererID && value == "" {
						continue // docs/decisions/pdf.md#pdf-renderer
					}
					if strings.HasSuffix(variable, "_TABLE") && !hasTable(local, value) {
						t.Errorf("%s: %s is %q, which the local stack does not make", function.LogicalID, variable, value)
					}
					for service, parameter := range map[string]string{"DYNAMODB": "DynamoDbEndpointUrl", "SECRETS_MANAGER": "SecretsManagerEndpointUrl", "LAMBDA": "LambdaEndpointUrl"} {
						if variable == "AWS_ENDPOINT_URL_"+service && value != overrides[parameter] {
							t.Errorf("%s: %s is %q, want %q", function.LogicalID, variable, value, overrides[parameter])
						}
					}
				}
			}
		})
	}
}

// declared are the variables that the template declares, without those that Lambda sets.
func declared(all, names map[string]string) map[string]string {
	out := map[string]string{}
	for name := range names {
		if value, ok := all[name]; ok {
			out[name] = value
		}
	}
	return out
}

func hasTable(t *template.Template, name string) bool {
	for _, table := range t.Tables {
		if table.Name == name {
			return true
		}
	}
	return false
}
