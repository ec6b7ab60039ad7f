package policy

import (
	"slices"
	"testing"

	"github.com/BurntSushi/toml"
)

// samconfig.toml deploys three stages, each under its own name. cmd/svc TestPreflight checks that the template takes
// their parameters.
func TestSAMConfig(t *testing.T) {
	type commands map[string]struct{ Parameters map[string]any }
	var config struct{ Default, Dev, Staging, Prod commands }
	if _, err := toml.DecodeFile(root("samconfig.toml"), &config); err != nil {
		t.Fatal(err)
	}
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
		// days at most.
		kept := map[string]string{"dev": "7", "staging": "30", "prod": "30"}[stage]
		for _, want := range []string{"Stage=" + stage, "LogRetentionDays=" + kept} {
			if !slices.Contains(overrides, any(want)) {
				t.Errorf("%s: overrides %v lack %s", stage, overrides, want)
			}
		}
		// docs/decisions/pdf.md#pdf-isolation
		if apart := slices.Contains(overrides, any("PdfIsolation=project")); apart != (stage != "dev") {
			t.Errorf("%s: each project has a browser of its own: %t", stage, apart)
		}
		if whole := slices.Contains(overrides, any("LogPayloads=on")); whole != (stage == "dev") {
			t.Errorf("%s: bodies are logged whole: %t", stage, whole)
		}
	}
}
