package browser

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// poppler runs one of the tools of poppler-utils on a PDF: what is measured is measured by a reader that is not ours.
func poppler(t testing.TB, pdf []byte, tool string, args ...string) []byte {
	t.Helper()
	name := filepath.Join(t.TempDir(), "document.pdf")
	if err := os.WriteFile(name, pdf, 0o600); err != nil {
		t.Fatal(err)
	}
	args = append(args, name)
	if tool == "pdftotext" {
		args = append(args, "-") // the others print by themselves
	}
	out, err := exec.Command(tool, args...).Output()
	if err != nil {
		t.Fatalf("%s (of the package poppler-utils): %v", tool, err)
	}
	return out
}

// text is the text of a PDF as a reader extracts it, in reading order.
func text(t testing.TB, pdf []byte) string {
	t.Helper()
	return strings.Join(strings.Fields(string(poppler(t, pdf, "pdftotext", "-raw"))), " ")
}

var infoSize = regexp.MustCompile(`Page +\d+ size: +([\d.]+) x ([\d.]+) pts`)

// sheets are the sizes of all pages in points, as a reader shows them.
func sheets(t testing.TB, pdf []byte) [][2]float64 {
	t.Helper()
	var all [][2]float64
	for _, m := range infoSize.FindAllSubmatch(poppler(t, pdf, "pdfinfo", "-f", "1", "-l", "10000"), -1) {
		width, _ := strconv.ParseFloat(string(m[1]), 64)
		height, _ := strconv.ParseFloat(string(m[2]), 64)
		all = append(all, [2]float64{width, height})
	}
	return all
}

// inked measures, in millimetres, how far the first page's ink stays away from its edges.
func inked(t testing.TB, pdf []byte) Margins {
	t.Helper()
	const dpi = 72
	pgm := poppler(t, pdf, "pdftoppm", "-r", strconv.Itoa(dpi), "-gray", "-f", "1", "-l", "1", "-singlefile", "-aa", "no", "-aaVector", "no")
	var width, height, depth int
	if _, err := fmt.Sscanf(string(pgm[:min(len(pgm), 30)]), "P5\n%d %d\n%d\n", &width, &height, &depth); err != nil {
		t.Fatal(err)
	}
	pixels := pgm[len(pgm)-width*height:]
	left, top, right, bottom := width, height, -1, -1
	for y := range height {
		row := pixels[y*width : (y+1)*width]
		if first := bytes.IndexFunc(row, func(r rune) bool { return r < 100 }); first >= 0 {
			last := bytes.LastIndexFunc(row, func(r rune) bool { return r < 100 })
			left, right, top, bottom = min(left, first), max(right, last), min(top, y), y
		}
	}
	mm := func(pixels int) float64 { return float64(pixels) / dpi * millimetresPerInch }
	return Margins{Top: mm(top), Right: mm(width - 1 - right), Bottom: mm(height - 1 - bottom), Left: mm(left)}
}

func near(a, b Margins, by float64) bool {
	return math.Abs(a.Top-b.Top) <= by && math.Abs(a.Right-b.Right) <= by && math.Abs(a.Bottom-b.Bottom) <= by && math.Abs(a.Left-b.Left) <= by
}
