// Package pdftest measures PDFs with the tools of poppler-utils, so that what the product prints is read by a reader
// that is not its own.
package pdftest

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"svcapi/local/chromium"
)

// MillimetresPerInch converts between the units of paper and of PDF: an inch has 72 points.
const MillimetresPerInch = 25.4

// Main runs a package's tests in a jail that denies what Lambda denies, with the browser's path in the variable CHROMIUM.
// The tests with the names of outside run once more without the jail: they check what needs what it denies. JAIL=off, or
// another system than Linux, runs all without it.
func Main(m *testing.M, outside ...string) {
	code, err := run(m, outside)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(code)
}

func run(m *testing.M, outside []string) (int, error) {
	switch os.Getenv(jailStage) {
	case "enter":
		return enterJail()
	case "within":
		return m.Run(), nil
	}
	path, err := chromium.Path(context.Background(), func(step string) { fmt.Fprintln(os.Stderr, step) })
	if err != nil {
		return 0, err
	}
	if err := os.Setenv(chromium.Variable, path); err != nil {
		return 0, err
	}
	flag.Parse()
	// A fuzzing process talks with those that it starts.
	if !canJail || os.Getenv("JAIL") == "off" || value("test.fuzz") != "" || value("test.fuzzworker") == "true" || value("test.list") != "" {
		return m.Run(), nil
	}
	code, err := jail(path)
	if err != nil || code != 0 {
		return code, err
	}
	run := among(outside, value("test.run"))
	if run == "" {
		return 0, nil
	}
	for name, value := range map[string]string{"test.run": run, "test.bench": ""} {
		if err := flag.Set(name, value); err != nil {
			return 0, err
		}
	}
	return m.Run(), nil
}

// Jailed tells whether this process is in the jail.
func Jailed() bool { return os.Getenv(jailStage) == "within" }

func value(name string) string { return flag.Lookup(name).Value.String() }

// among returns the pattern of those names that a pattern of tests chooses, or nothing.
func among(names []string, pattern string) string {
	top, below, _ := strings.Cut(pattern, "/")
	chosen := slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		matches, err := regexp.MatchString(top, name)
		return err == nil && !matches
	})
	if len(chosen) == 0 {
		return ""
	}
	return "^(" + strings.Join(chosen, "|") + ")$/" + below
}

// Browser is the path of the browser, within Main.
func Browser() string { return os.Getenv(chromium.Variable) }

// tool runs one of the tools on a PDF.
func tool(t testing.TB, pdf []byte, name string, args ...string) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "document.pdf")
	if err := os.WriteFile(path, pdf, 0o600); err != nil {
		t.Fatal(err)
	}
	args = append(args, path)
	if name == "pdftotext" {
		args = append(args, "-") // the others print by themselves
	}
	out, err := exec.CommandContext(t.Context(), name, args...).Output()
	if err != nil {
		t.Fatalf("%s (is poppler-utils installed?): %v", name, err)
	}
	return out
}

// Text is the text of a PDF, in its own order, with single spaces.
func Text(t testing.TB, pdf []byte) string {
	t.Helper()
	return strings.Join(strings.Fields(string(tool(t, pdf, "pdftotext", "-raw"))), " ")
}

// Fonts are the names of the fonts in a PDF.
func Fonts(t testing.TB, pdf []byte) string {
	t.Helper()
	return string(tool(t, pdf, "pdffonts"))
}

var sheet = regexp.MustCompile(`Page +\d+ size: +([\d.]+) x ([\d.]+) pts`)

// Sheets are the widths and heights of all pages in points, as a reader shows them.
func Sheets(t testing.TB, pdf []byte) [][2]float64 {
	t.Helper()
	var all [][2]float64
	for _, m := range sheet.FindAllSubmatch(tool(t, pdf, "pdfinfo", "-f", "1", "-l", "100000"), -1) {
		width, _ := strconv.ParseFloat(string(m[1]), 64)
		height, _ := strconv.ParseFloat(string(m[2]), 64)
		all = append(all, [2]float64{width, height})
	}
	return all
}

// Margins are millimetres, clockwise from the top.
type Margins [4]float64

// Near tells whether no side differs by more than so many millimetres.
func (m Margins) Near(other Margins, by float64) bool {
	for i := range m {
		if math.Abs(m[i]-other[i]) > by {
			return false
		}
	}
	return true
}

// Inked measures how far the first page's ink stays away from its edges.
func Inked(t testing.TB, pdf []byte) Margins {
	t.Helper()
	const dpi = 72
	pgm := tool(t, pdf, "pdftoppm", "-r", strconv.Itoa(dpi), "-gray", "-f", "1", "-l", "1", "-singlefile", "-aa", "no", "-aaVector", "no")
	var width, height, depth int
	if _, err := fmt.Sscanf(string(pgm[:min(len(pgm), 30)]), "P5\n%d %d\n%d\n", &width, &height, &depth); err != nil {
		t.Fatal(err)
	}
	pixels := pgm[len(pgm)-width*height:]
	left, top, right, bottom := width, height, -1, -1
	dark := func(r rune) bool { return r < 100 }
	for y := range height {
		row := pixels[y*width : (y+1)*width]
		if first := bytes.IndexFunc(row, dark); first >= 0 {
			left, right = min(left, first), max(right, bytes.LastIndexFunc(row, dark))
			top, bottom = min(top, y), y
		}
	}
	mm := func(pixels int) float64 { return float64(pixels) / dpi * MillimetresPerInch }
	return Margins{mm(top), mm(width - 1 - right), mm(height - 1 - bottom), mm(left)}
}

// PNG draws one page of a PDF.
func PNG(t testing.TB, pdf []byte, page, dpi int) []byte {
	t.Helper()
	return tool(t, pdf, "pdftoppm", "-png", "-r", strconv.Itoa(dpi), "-f", strconv.Itoa(page), "-l", strconv.Itoa(page), "-singlefile")
}
