// The command bench compares barcodes with libzint in the same run, turn by turn. Its argument is the program that is
// compiled from zint/zint.c. See the target bench-barcode.
package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"svcapi/functions/barcode/draw"
	"svcapi/functions/barcode/qrcode"
	"svcapi/functions/barcode/symbology"
)

const turns = 9

// comparison is one text that both encode. Encode returns the modules per side.
type comparison struct {
	name, data string
	count      int  // symbols of libzint per turn
	drawn      bool // as PNG too
	encode     func(data string) (int, error)
}

var comparisons = []comparison{
	{"Code 128 to PNG", "SVC-2026/11 00481516", 3000, true, code128},
	{"QR code", "hello, world", 3000, false, qrCode},
	{"QR code", "https://example.com/pay/481516", 2000, false, qrCode},
	{"QR code", strings.Repeat("Two lines of tea, 12 kg; ", 92), 40, false, qrCode},
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: bench ZINT, the program that is compiled from zint/zint.c")
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
	null := filepath.Join(dir, "null.png") // writing there costs libzint nothing
	if err := os.Symlink(os.DevNull, null); err != nil {
		return err
	}
	fmt.Fprintf(out, "Least of %d turns; the goal is 0.50 of libzint's time.\n\n", turns)
	fmt.Fprintf(out, "%-16s %6s %8s %12s %13s %6s %12s\n", "", "bytes", "modules", "libzint", "this project", "ratio", "allocations")
	for _, c := range comparisons {
		file := ""
		if c.drawn {
			file = null
		}
		if err := c.compare(program, file, out); err != nil {
			return err
		}
	}
	return nil
}

// compare prints the least times of both for a symbol that must have as many modules in both.
func (c *comparison) compare(program, file string, out io.Writer) error {
	var zint, own float64 // nanoseconds
	var zintModules, modules int
	var result testing.BenchmarkResult
	for turn := range turns {
		var ns float64
		args := []string{c.data, fmt.Sprint(c.count)}
		if file != "" {
			args = append(args, file)
		}
		printed, err := exec.Command(program, args...).Output()
		if err != nil {
			return fmt.Errorf("%s: %w", program, err)
		}
		if _, err := fmt.Sscan(string(printed), &ns, &zintModules); err != nil {
			return err
		}
		result = testing.Benchmark(func(b *testing.B) {
			for b.Loop() {
				if modules, err = c.encode(c.data); err != nil {
					b.Fatal(err)
				}
			}
		})
		if err != nil {
			return err
		}
		mine := float64(result.T.Nanoseconds()) / float64(result.N)
		if turn == 0 {
			zint, own = ns, mine
		}
		zint, own = min(zint, ns), min(own, mine)
	}
	if modules != zintModules {
		return fmt.Errorf("%s: %d modules, libzint has %d", c.name, modules, zintModules)
	}
	fmt.Fprintf(out, "%-16s %6d %8d %9.1f µs %10.1f µs %6.2f %12d\n", c.name, len(c.data), modules, zint/1000, own/1000,
		own/zint, result.AllocsPerOp())
	return nil
}

func code128(data string) (int, error) {
	kind, _ := symbology.Lookup("C128")
	code, err := kind.Encode(data)
	if err != nil {
		return 0, err
	}
	draw.Linear(kind.Name, code, 2, 80, 0, 0).PNG()
	return code.Bounds().Dx(), nil
}

func qrCode(data string) (int, error) {
	code, err := qrcode.Encode(data, qrcode.M)
	if err != nil {
		return 0, err
	}
	return code.Bounds().Dx(), nil
}
