package symbology

import (
	"encoding/json"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"

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

func encode(t testing.TB, name, data string) Symbol {
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

// bars writes a symbol as the vectors do: widths of bar, space, bar, ...; for two heights T and S; for a matrix its
// rows.
func bars(code Symbol) string {
	size := code.Size
	var b strings.Builder
	if size.Y > 5 {
		for y := range size.Y {
			for x := range size.X {
				b.WriteString(map[bool]string{true: "1", false: "0"}[code.Dark(x, y)])
			}
			b.WriteString("/")
		}
		return strings.TrimSuffix(b.String(), "/")
	}
	if size.Y > 1 {
		for x := 0; x < size.X; x += 2 {
			b.WriteString(map[bool]string{true: "T", false: "S"}[code.Dark(x, 0)])
		}
		return b.String()
	}
	for x := 0; x < size.X; {
		start := x
		for x < size.X && code.Dark(x, 0) == code.Dark(start, 0) {
			x++
		}
		b.WriteString(strconv.Itoa(x - start))
	}
	return b.String()
}

// widths are the modules of a symbol for n characters, from the table of openapi.yaml#generateBarcode.
var widths = map[string]func(n int) int{
	"C128A":   func(n int) int { return 11*n + 35 },
	"C128B":   func(n int) int { return 11*n + 35 },
	"C128C":   func(n int) int { return 11*n/2 + 35 },
	"EAN13":   func(int) int { return 95 },
	"EAN8":    func(int) int { return 67 },
	"UPCA":    func(int) int { return 95 },
	"UPCE":    func(int) int { return 51 },
	"C39":     func(n int) int { return 16*(n+2) - 1 },
	"C39+":    func(n int) int { return 16*(n+3) - 1 },
	"I25":     func(n int) int { return 9*(n+n%2) + 9 },
	"ITF14":   func(int) int { return 135 },
	"MSI":     func(n int) int { return 12*n + 7 },
	"POSTNET": func(n int) int { return 10*n + 13 },
}

// The modules of every type are those that two independent encoders draw, and as many as the contract says.
func TestVectors(t *testing.T) {
	perType := map[string]int{}
	for _, v := range vectors(t) {
		perType[v.Type]++
		if len(v.Sources) < 2 {
			t.Errorf("%s %q has the sources %v, want two", v.Type, v.Data, v.Sources)
		}
		code := encode(t, v.Type, v.Data)
		if got := bars(code); got != v.Bars {
			t.Errorf("%s %q\n got %s\nwant %s (%s)", v.Type, v.Data, got, v.Bars, strings.Join(v.Sources, ", "))
		}
		if width := widths[v.Type]; width != nil && code.Size.X != width(len(v.Data)) {
			t.Errorf("%s %q is %d modules wide, want %d", v.Type, v.Data, code.Size.X, width(len(v.Data)))
		}
	}
	for _, name := range Names() {
		if perType[name] < 10 {
			t.Errorf("%s has %d vectors, want at least 10", name, perType[name])
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
		if got := encode(t, example.name, example.data).Text; got != example.content {
			t.Errorf("%s %s: content %s, want %s (%s)", example.name, example.data, got, example.content, example.source)
		}
	}
}
