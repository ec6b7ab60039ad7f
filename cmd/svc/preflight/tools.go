package preflight

import (
	"context"
	"os/exec"
	"runtime"
	"strings"

	"svcapi/cmd/svc/app"
)

// tool is a program that a deployment runs.
type tool struct {
	name, version string // version is the argument that prints the version
	build         bool   // only sam build needs the tool
	why           string
}

var tools = []tool{
	{"sam", "--version", false, "the SAM CLI deploys: docs.aws.amazon.com, \"Install the AWS SAM CLI\""},
	{"go", "version", true, "sam build compiles the functions"},
	{"make", "--version", true, "sam build calls the Makefile"},
	{"bash", "--version", true, "the Makefile's recipes run in bash"},
	{"node", "--version", true, "the layer of the browser is unpacked by Node"},
	{"npm", "--version", true, "the browser comes from npm"},
}

// tools checks the system and its programs.
func (f *flight) tools(ctx context.Context, released bool) {
	f.system(runtime.GOOS, released)
	for _, t := range tools {
		if t.build && released {
			continue
		}
		out, err := exec.CommandContext(ctx, t.name, t.version).Output()
		if err != nil {
			f.Add(app.Broken, "tool", t.name, "it does not run: "+err.Error(), "Install it: "+t.why+".")
			continue
		}
		version, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
		f.Add(app.OK, "tool", t.name, version, "")
	}
}

func (f *flight) system(goos string, released bool) {
	if goos == "windows" && !released {
		f.Add(app.Broken, "system", goos, "the build needs make and bash with Linux paths", "Build inside WSL, or deploy a released package.")
		return
	}
	f.Add(app.OK, "system", goos, "", "")
}
