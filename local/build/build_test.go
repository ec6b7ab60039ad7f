package build_test

import (
	"context"
	"debug/buildinfo"
	"strings"
	"testing"

	"svcapi/local/build"
	"svcapi/local/template"
	"svcapi/test/must"
)

// TestFunctions checks that every function of the template builds, with the flags that ship. (-trimpath keeps
// -ldflags out of what a binary says of itself.)
func TestFunctions(t *testing.T) {
	product := must.Get(template.Load(nil)).Or(t)
	paths := must.Get(build.Functions(context.Background(), product.Functions)).Or(t)
	if len(paths) != len(product.Functions) {
		t.Errorf("%d binaries of %d functions", len(paths), len(product.Functions))
	}
	want := map[string]string{"-trimpath": "true", "-tags": "lambda.norpc", "CGO_ENABLED": "0"}
	for id, path := range paths {
		info := must.Get(buildinfo.ReadFile(path)).Or(t)
		got := map[string]string{}
		for _, setting := range info.Settings {
			got[setting.Key] = setting.Value
		}
		for name, v := range want {
			if got[name] != v {
				t.Errorf("%s: %s is %q, want %q", id, name, got[name], v)
			}
		}
	}
}

// TestBroken checks that a function that does not build is named, with what the compiler says.
func TestBroken(t *testing.T) {
	_, err := build.Functions(context.Background(), []template.Function{{LogicalID: "NoneFunction", Package: "none"}})
	if err == nil || !strings.Contains(err.Error(), "build ./functions/none: exit status 1\n") {
		t.Error(err)
	}
}
