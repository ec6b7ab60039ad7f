package browser

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// chromium is the browser that the tests start: the layer's, unpacked by `make layer`, or the one that CHROMIUM names.
var chromium = func() string {
	if path := os.Getenv("CHROMIUM"); path != "" {
		return path
	}
	path, _ := filepath.Abs("../../../.local/layer/chromium/headless_shell")
	return path
}()

func TestMain(m *testing.M) {
	if _, err := os.Stat(chromium); err != nil {
		fmt.Fprintln(os.Stderr, "no browser: run `make layer`, or set CHROMIUM:", err)
		os.Exit(1)
	}
	if err := Seclude(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// limits are those of the function as it is deployed.
func limits(t testing.TB) Options {
	return Options{Path: chromium, Dir: t.TempDir(), Time: 20 * time.Second, Memory: 1400 << 20, Pages: 500, Bytes: 4_700_000,
		RecycleAfter: 200, RecycleMemory: 400 << 20}
}

// run returns a renderer that is ready, and ends it with the test.
func run(t testing.TB, o Options) *Renderer {
	t.Helper()
	r := New(o)
	t.Cleanup(r.Close)
	if err := r.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	return r
}

var a4 = Geometry{Size: Sizes["A4"], Margins: Margins{15, 15, 15, 15}}
