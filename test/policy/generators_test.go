package policy

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"svcapi/local/workdir"
)

// absolute is a path inside the repository that holds from any folder.
func absolute(t *testing.T, elements ...string) string {
	t.Helper()
	path, err := filepath.Abs(root(elements...))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// tool runs a command in a folder.
func tool(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, output)
	}
}

// A client that is generated from openapi.yaml compiles: Go.
func TestGoClient(t *testing.T) {
	dir := t.TempDir()
	generator := filepath.Join(dir, "oapi-codegen")
	tool(t, absolute(t, "tools", "go"), "go", "build", "-o", generator, "github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen")
	client := filepath.Join(dir, "client.go")
	tool(t, dir, generator, "-generate", "types,client", "-package", "client", "-o", client, absolute(t, "openapi.yaml"))
	// It is compiled as a package of the module tools/go, which has what it imports.
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{absolute(t, "tools", "go", "client", "client.go"): client}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(file, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	tool(t, absolute(t, "tools", "go"), "go", "build", "-overlay", file, "./client")
}

// use is what a TypeScript client does with the types: they take good requests and refuse bad ones.
const use = `import type { components, operations } from "./api";
type Body<name extends keyof operations> = operations[name] extends { requestBody: { content: { "application/json": infer body } } } ? body : never;
export const send: Body<"sendSms"> = { send_method: "single", to: "0771234567", message: "Hello" };
export const barcode: components["schemas"]["BarcodeRequest"]["type"] = "EAN13";
// @ts-expect-error: no such method
export const wrong: Body<"sendSms"> = { send_method: "none", to: "0771234567", message: "Hello" };
`

// A client that is generated from openapi.yaml compiles: TypeScript.
func TestTypeScriptClient(t *testing.T) {
	modules, err := workdir.NodeModules(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	tool(t, dir, filepath.Join(modules, ".bin", "openapi-typescript"), absolute(t, "openapi.yaml"), "-o", filepath.Join(dir, "api.ts"))
	if err := os.WriteFile(filepath.Join(dir, "use.ts"), []byte(use), 0o600); err != nil {
		t.Fatal(err)
	}
	tool(t, dir, filepath.Join(modules, ".bin", "tsc"), "--noEmit", "--strict", "use.ts")
}
