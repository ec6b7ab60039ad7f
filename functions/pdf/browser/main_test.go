package browser

import (
	"os"
	"testing"
	"time"

	"svcapi/local/pdftest"
)

func TestMain(m *testing.M) {
	if os.Getenv(servedDir) != "" {
		serveLines()
		return
	}
	pdftest.Main(m, "TestSeclude", "TestKilled", "TestRecycle", "TestClose", "TestParentKilled", "TestEgress")
}

// limitsOf are those of the function as it is deployed.
func limitsOf(t testing.TB) Options {
	return Options{
		Path: pdftest.Browser(), Dir: t.TempDir(), Time: 20 * time.Second, Memory: 1536 << 20, Pages: 500, Bytes: 4_700_000,
		RecycleAfter: 200, RecycleMemory: 300 << 20, Protections: Seclude(),
	}
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
