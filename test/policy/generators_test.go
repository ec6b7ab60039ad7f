package policy

import (
	"os"
	"path/filepath"
	"testing"

	"svcapi/local/workdir"
)

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
	t.Parallel()
	modules, err := workdir.NodeModules(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	tool(t, dir, filepath.Join(modules, ".bin", "openapi-typescript"), root("openapi.yaml"), "-o",
		filepath.Join(dir, "api.ts"))
	if err := os.WriteFile(filepath.Join(dir, "use.ts"), []byte(use), 0o600); err != nil {
		t.Fatal(err)
	}
	tool(t, dir, filepath.Join(modules, ".bin", "tsc"), "--noEmit", "--strict", "--skipLibCheck",
		"--lib", "es2022", "use.ts")
}
