package policy

import (
	"slices"
	"testing"

	"github.com/BurntSushi/toml"
)

// samconfig.toml deploys three stages, each under its own name, with parameters that the template takes.
func TestSAMConfig(t *testing.T) {
	type command struct {
		Parameters map[string]any
	}
	var config map[string]any
	if _, err := toml.DecodeFile(root("samconfig.toml"), &config); err != nil {
		t.Fatal(err)
	}
	var stages map[string]map[string]command
	delete(config, "version")
	if text, err := toml.Marshal(config); err != nil {
		t.Fatal(err)
	} else if err := toml.Unmarshal(text, &stages); err != nil {
		t.Fatal(err)
	}
	s := current(t)
	for _, stage := range []string{"default", "dev", "staging", "prod"} {
		build := stages[stage]["build"].Parameters
		if build["build_in_source"] != true || build["parallel"] != true || build["cached"] != false {
			t.Errorf("%s: build has %v", stage, build)
		}
		if _, ok := stages[stage]["validate"]; ok {
			t.Errorf("%s: validate has settings: sam validate is called with and without --lint", stage)
		}
		deploy := stages[stage]["deploy"].Parameters
		if stage == "default" {
			if deploy != nil {
				t.Error("a deployment has to name its stage")
			}
			continue
		}
		if deploy["stack_name"] != "svc-"+stage {
			t.Errorf("%s: the stack is %v", stage, deploy["stack_name"])
		}
		var overrides []string
		list, _ := deploy["parameter_overrides"].([]any)
		for _, item := range list {
			text, _ := item.(string)
			overrides = append(overrides, text)
		}
		if !slices.Contains(overrides, "Stage="+stage) {
			t.Errorf("%s: overrides %v do not name the stage", stage, overrides)
		}
		// docs/decisions.md#payload-logging: bodies are logged whole on dev alone, and logs are kept for 30 days at most.
		if whole := slices.Contains(overrides, "LogPayloads=on"); whole != (stage == "dev") {
			t.Errorf("%s: bodies are logged whole: %t", stage, whole)
		}
		if kept := map[string]string{"dev": "7", "staging": "30", "prod": "30"}[stage]; !slices.Contains(overrides, "LogRetentionDays="+kept) {
			t.Errorf("%s: overrides %v do not keep logs for %s days", stage, overrides, kept)
		}
		for _, finding := range checkOverrides(s, overrides) {
			t.Errorf("%s: %s", stage, finding)
		}
	}
	for _, broken := range []string{"Stag=dev", "LogLevel=LOUD", "SettleAfterSeconds=30", "SettleAfterSeconds=89", "SettleCapturedAfterSeconds=899", "PriceSms=-1", "PriceSms=1.5", "VendorTimeoutSeconds=25"} {
		if len(checkOverrides(s, []string{broken})) == 0 {
			t.Errorf("does not notice the override %s", broken)
		}
	}
}
