package policy

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"

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
	endpoints := map[string]string{"AWS_ENDPOINT_URL_DYNAMODB": "DynamoDbEndpointUrl",
		"AWS_ENDPOINT_URL_SECRETS_MANAGER": "SecretsManagerEndpointUrl", "AWS_ENDPOINT_URL_LAMBDA": "LambdaEndpointUrl"}
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
					if parameter, ok := endpoints[variable]; ok && value != overrides[parameter] {
						t.Errorf("%s: %s is %q, want %q", function.LogicalID, variable, value, overrides[parameter])
					}
				}
			}
		})
	}
}

// samconfig.toml deploys three stages, each under its own name. cmd/svc TestPreflight checks that the template takes
// their parameters.
func TestSAMConfig(t *testing.T) {
	type commands map[string]struct{ Parameters map[string]any }
	var config struct{ Default, Dev, Staging, Prod commands }
	_, err := toml.DecodeFile(root("samconfig.toml"), &config)
	must.Succeed(t, err)
	for stage, of := range map[string]commands{
		"default": config.Default, "dev": config.Dev, "staging": config.Staging, "prod": config.Prod,
	} {
		build := of["build"].Parameters
		if build["build_in_source"] != true || build["parallel"] != true || build["cached"] != false {
			t.Errorf("%s: build has %v", stage, build)
		}
		if _, ok := of["validate"]; ok {
			t.Errorf("%s: validate has settings: sam validate is called with and without --lint", stage)
		}
		deploy := of["deploy"].Parameters
		if stage == "default" {
			if deploy != nil {
				t.Error("a deployment has to name its stage")
			}
			continue
		}
		if deploy["stack_name"] != "svc-"+stage {
			t.Errorf("%s: the stack is %v", stage, deploy["stack_name"])
		}
		overrides, _ := deploy["parameter_overrides"].([]any)
		// docs/decisions/requests.md#payload-logging: bodies are logged whole on dev alone, and logs are kept for 30
		// days at most. docs/decisions/pdf.md#pdf-isolation: elsewhere each project has a browser of its own.
		kept, dev := map[string]string{"dev": "7", "staging": "30", "prod": "30"}[stage], stage == "dev"
		for override, want := range map[string]bool{"Stage=" + stage: true, "LogRetentionDays=" + kept: true,
			"PdfIsolation=project": !dev, "LogPayloads=on": dev} {
			if slices.Contains(overrides, any(override)) != want {
				t.Errorf("%s: %s is among %v: %t", stage, override, overrides, !want)
			}
		}
	}
}
