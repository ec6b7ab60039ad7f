// The command bench compares one barcode as PNG, from text to bytes, with libzint in the same run, turn by turn.
// Its argument is the program made of zint/zint.c. See the target bench-barcode.
package main

import (
	"bytes"
	"fmt"
	"image/png"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"svcapi/functions/barcode/draw"
	"svcapi/functions/barcode/symbology"
)

const (
	data   = "SVC-2026/11 00481516" // 20 characters
	factor = 2
	height = 80
	turns  = 9
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: bench ZINT, the program made of zint/zint.c")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(program string, out io.Writer) error {
	dir, err := os.MkdirTemp("", "bench-barcode-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()

	// Both must draw the same size.
	sample := filepath.Join(dir, "sample.png")
	if _, err := zint(program, 1, sample); err != nil {
		return err
	}
	theirs, err := os.ReadFile(sample)
	if err != nil {
		return err
	}
	picture, err := ours()
	if err != nil {
		return err
	}
	for name, file := range map[string][]byte{"libzint": theirs, "this project": picture.PNG()} {
		size, err := png.DecodeConfig(bytes.NewReader(file))
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%-14s %d by %d pixels, %d bytes\n", name, size.Width, size.Height, len(file))
	}

	// Where zint writes costs it nothing.
	null := filepath.Join(dir, "null.png")
	if err := os.Symlink(os.DevNull, null); err != nil {
		return err
	}
	var own, zints []float64
	var last testing.BenchmarkResult
	for range turns {
		ns, err := zint(program, 5000, null)
		if err != nil {
			return err
		}
		zints = append(zints, ns)
		last = testing.Benchmark(func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				p, err := ours()
				if err != nil {
					b.Fatal(err)
				}
				p.PNG()
			}
		})
		own = append(own, float64(last.T.Nanoseconds())/float64(last.N))
	}
	slices.Sort(own)
	slices.Sort(zints)
	mine, his := own[turns/2], zints[turns/2]
	fmt.Fprintf(out, "\nCode 128 %q, factor %d, height %d, text to PNG, median of %d turns:\n", data, factor, height, turns)
	fmt.Fprintf(out, "%-14s %6.1f µs\n", "libzint", his/1000)
	fmt.Fprintf(out, "%-14s %6.1f µs, %d allocations, %d bytes\n", "this project", mine/1000, last.AllocsPerOp(), last.AllocedBytesPerOp())
	verdict := "reached"
	if mine > his/2 {
		verdict = "missed"
	}
	fmt.Fprintf(out, "%.2f of libzint's time (goal: at most 0.50, %s)\n", mine/his, verdict)
	return nil
}

func ours() (*draw.Picture, error) {
	kind, _ := symbology.Lookup("C128")
	code, err := kind.Encode(data)
	if err != nil {
		return nil, err
	}
	return draw.Linear(kind.Name, code, factor, height, 0, 0), nil
}

// zint returns libzint's nanoseconds per picture.
func zint(program string, count int, file string) (float64, error) {
	cmd := exec.Command(program, data, strconv.Itoa(count), file)
	cmd.Stderr = os.Stderr
	printed, err := cmd.Output()
	if err != nil {
		return 0, fmt.Errorf("%s: %w", program, err)
	}
	return strconv.ParseFloat(strings.TrimSpace(string(printed)), 64)
}
