package policy

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"svcapi/local/stack"
	"svcapi/local/template"
	"svcapi/test/must"
)

// samEnvironment is what sam local invoke would give each function with these parameter overrides, by SAM's own
// providers.
func samEnvironment(t *testing.T, overrides map[string]string) (environments map[string]map[string]string) {
	t.Helper()
	args := []string{"tools/environment.py", "template.yaml"}
	for name, value := range overrides {
		args = append(args, name+"="+value)
	}
	must.Succeed(t, json.Unmarshal([]byte(tool(t, root(), ".local/venv/bin/python", args...)), &environments))
	return environments
}

// sam local invoke reaches the local stack: with the same overrides a function has the same variables as in the local
// stack, table names and endpoints included.
func TestSAMLocalReachesTheLocalStack(t *testing.T) {
	t.Parallel()
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
			must.Succeed(t, err)
			environments := samEnvironment(t, overrides)
			if len(environments) != len(local.Functions) {
				t.Errorf("SAM finds %d functions, the local stack %d", len(environments), len(local.Functions))
			}
			for _, function := range local.Functions {
				got := environments[function.LogicalID]
				maps.DeleteFunc(got, func(name, _ string) bool { // what Lambda sets
					_, declared := function.Environment[name]
					return !declared
				})
				if !maps.Equal(got, function.Environment) {
					t.Errorf("%s: sam local gives\n%v\nthe local stack gives\n%v", function.LogicalID, got, function.Environment)
				}
				for variable, value := range got {
					if function.LogicalID == rendererID && value == "" {
						continue // docs/decisions/pdf.md#pdf-renderer
					}
					if strings.HasSuffix(variable, "_TABLE") &&
						!slices.ContainsFunc(local.Tables, func(table template.Table) bool { return table.Name == value }) {
						t.Errorf("%s: %s is %q, which the local stack does not make", function.LogicalID, variable, value)
					}
					for service, parameter := range map[string]string{"DYNAMODB": "DynamoDbEndpointUrl",
						"SECRETS_MANAGER": "SecretsManagerEndpointUrl", "LAMBDA": "LambdaEndpointUrl"} {
						if variable == "AWS_ENDPOINT_URL_"+service && value != overrides[parameter] {
							t.Errorf("%s: %s is %q, want %q", function.LogicalID, variable, value, overrides[parameter])
						}
					}
				}
			}
		})
	}
}
