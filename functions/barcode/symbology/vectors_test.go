package symbology

import (
	"bytes"
	"encoding/json"
	"image/color"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/boombuler/barcode"

	"svcapi/functions/barcode/internal/samples"
	"svcapi/test/must"
)

// vector is one line of testdata/vectors.jsonl: what encoders that are not this project's draw.
type vector struct {
	Type, Data, Bars string
	Sources          []string
}

func vectors(t testing.TB) []vector {
	t.Helper()
	file, err := os.Open("../testdata/vectors.jsonl")
	must.Succeed(t, err)
	defer file.Close()
	var all []vector
	for lines := json.NewDecoder(file); ; {
		var v vector
		if err := lines.Decode(&v); err == io.EOF {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		if v.Type != "QR" {
			all = append(all, v)
		}
	}
}

func encode(t testing.TB, name, data string) barcode.Barcode {
	t.Helper()
	base, variant, _ := strings.Cut(name, " ")
	kind, ok := Variant(base, strings.Contains(variant, "rectangle"), strings.Contains(variant, "gs1"))
	if !ok {
		t.Fatalf("no type %s", name)
	}
	code, err := kind.Encode(data)
	if err != nil {
		t.Fatalf("%s %q: %v", name, data, err)
	}
	return code
}

func dark(code barcode.Barcode, x, y int) bool { return code.At(x, y) == color.Color(color.Black) }

// bars writes a symbol as the vectors do: widths of bar, space, bar, ...; for two heights T and S; for a matrix its
// rows.
func bars(code barcode.Barcode) string {
	size := code.Bounds().Size()
	var b strings.Builder
	if size.Y > 5 {
		for y := range size.Y {
			for x := range size.X {
				b.WriteString(map[bool]string{true: "1", false: "0"}[dark(code, x, y)])
			}
			b.WriteString("/")
		}
		return strings.TrimSuffix(b.String(), "/")
	}
	if size.Y > 1 {
		for x := 0; x < size.X; x += 2 {
			b.WriteString(map[bool]string{true: "T", false: "S"}[dark(code, x, 0)])
		}
		return b.String()
	}
	for x := 0; x < size.X; {
		start := x
		for x < size.X && dark(code, x, 0) == dark(code, start, 0) {
			x++
		}
		b.WriteString(strconv.Itoa(x - start))
	}
	return b.String()
}

// The modules of every type are those that two independent encoders draw.
func TestVectors(t *testing.T) {
	perType := map[string]int{}
	for _, v := range vectors(t) {
		perType[v.Type]++
		if len(v.Sources) < 2 {
			t.Errorf("%s %q has the sources %v, want two", v.Type, v.Data, v.Sources)
		}
		if got := bars(encode(t, v.Type, v.Data)); got != v.Bars {
			t.Errorf("%s %q\n got %s\nwant %s (%s)", v.Type, v.Data, got, v.Bars, strings.Join(v.Sources, ", "))
		}
	}
	for _, name := range Names() {
		if perType[name] < 10 {
			t.Errorf("%s has %d vectors, want at least 10", name, perType[name])
		}
	}
}

// What the decoder does not know is compared bar by bar with bwip-js: MSI, POSTNET and short Interleaved 2 of 5.
func TestBarsAgree(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	var requests [][2]string
	for range 200 {
		requests = append(requests,
			[2]string{"MSI", samples.Random(r, "MSI")},
			[2]string{"POSTNET", strings.NewReplacer("-", "", " ", "").Replace(samples.Random(r, "POSTNET"))},
			[2]string{"I25", samples.Digits(r, 1+r.IntN(5))})
	}
	in, err := json.Marshal(requests)
	must.Succeed(t, err)
	script, err := filepath.Abs("../testdata/bars.mjs")
	must.Succeed(t, err)
	cmd := exec.CommandContext(t.Context(), "node", script)
	cmd.Dir, cmd.Stdin, cmd.Stderr = "../../../.local/barcode", bytes.NewReader(in), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v; make barcode-tools installs bwip-js", err)
	}
	var want []string
	if err := json.Unmarshal(out, &want); err != nil || len(want) != len(requests) {
		t.Fatalf("%d results (%v)", len(want), err)
	}
	for i, request := range requests {
		if got := bars(encode(t, request[0], request[1])); got != want[i] {
			t.Errorf("%s %s:\n got %s\nwant %s", request[0], request[1], got, want[i])
		}
	}
}

// Worked examples of check digits and of the text that they are part of.
func TestWorkedExamples(t *testing.T) {
	for _, example := range []struct{ name, data, content, source string }{
		{"EAN13", "629104150021", "6291041500213", "GS1, how to calculate a check digit"},
		{"EAN13", "978030640615", "9780306406157", "International ISBN Agency, users' manual"},
		{"EAN13", "4006381333931", "4006381333931", "Wikipedia, International Article Number"},
		{"EAN8", "9638507", "96385074", "common example of an EAN-8"},
		{"UPCA", "03600029145", "036000291452", "Wikipedia, Universal Product Code"},
		{"UPCE", "654321", "06543217", "Wikipedia, Universal Product Code: UPC-A 065100004327"},
		{"UPCE", "065100004327", "06543217", "the same, as UPC-A"},
		{"UPCE", "06510000432", "06543217", "the same without check digit"},
		{"UPCE", "06543217", "06543217", "the same with check digit"},
		{"ITF14", "1540014128876", "15400141288763", "Wikipedia, ITF-14"},
		{"I25", "123", "0123", "docs/decisions/pictures.md#other-barcodes: an odd count gets a leading 0"},
		{"POSTNET", "55555-1237", "55555-1237", "ZIP+4 with check digit 2"},
		{"C39+", "+A123BJC5D6E71", "+A123BJC5D6E71", "HIBC supplier label, check character G"},
	} {
		if got := encode(t, example.name, example.data).Content(); got != example.content {
			t.Errorf("%s %s: content %s, want %s (%s)", example.name, example.data, got, example.content, example.source)
		}
	}
}
