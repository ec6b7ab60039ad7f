package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/boombuler/barcode"

	"svcapi/functions/barcode/draw"
	"svcapi/functions/barcode/qrcode"
	"svcapi/functions/barcode/symbology"
	"svcapi/test/must"
)

// BenchmarkLibzint compares barcodes with libzint in the same run, turn by turn, by the least processor time that both
// need for a symbol. The goal is a ratio of 0.50. The variable ZINT names the program of testdata/zint.c: make
// bench-barcode sets the variable.
func BenchmarkLibzint(b *testing.B) {
	if os.Getenv("ZINT") == "" {
		b.Skip("ZINT is not set")
	}
	for _, c := range []struct {
		kind, data string
		count      int // symbols per turn
		encode     func(data string) (barcode.Barcode, error)
	}{
		{"C128", "SVC-2026/11 00481516", 3000, code128PNG},
		{"QR", "hello, world", 3000, qrCode},
		{"QR", "https://example.com/pay/481516", 2000, qrCode},
		{"QR", strings.Repeat("Two lines of tea, 12 kg; ", 92), 50, qrCode},
	} {
		b.Run(fmt.Sprintf("%s,bytes=%d", c.kind, len(c.data)), func(b *testing.B) {
			var zint, own []float64 // nanoseconds per symbol
			var allocations float64
			for range 9 {
				ns, modules := runZint(b, c.kind, c.data, c.count)
				zint = append(zint, ns)
				start := processorTime(b)
				allocations = testing.AllocsPerRun(c.count-1, func() { // it makes one run more than asked for
					if code, err := c.encode(c.data); err != nil || code.Bounds().Dx() != modules {
						b.Fatalf("libzint has %d modules (%v)", modules, err)
					}
				})
				own = append(own, float64(processorTime(b)-start)/float64(c.count))
			}
			b.ReportMetric(0, "ns/op") // of all turns
			b.ReportMetric(slices.Min(zint)/1000, "libzint-µs")
			b.ReportMetric(slices.Min(own)/1000, "own-µs")
			b.ReportMetric(slices.Min(own)/slices.Min(zint), "ratio")
			b.ReportMetric(allocations, "allocations")
		})
	}
}

// runZint returns libzint's nanoseconds per symbol, and the modules per side.
func runZint(b *testing.B, kind, data string, count int) (ns float64, modules int) {
	b.Helper()
	var printed bytes.Buffer
	cmd := exec.Command(os.Getenv("ZINT"), kind, data, strconv.Itoa(count))
	cmd.Stderr = &printed
	if err := cmd.Run(); err != nil {
		b.Fatalf("%v: %s", err, &printed)
	}
	if _, err := fmt.Fscan(&printed, &ns, &modules); err != nil {
		b.Fatal(err)
	}
	return ns, modules
}

// processorTime returns the nanoseconds that this process has used so far.
func processorTime(b *testing.B) int64 {
	b.Helper()
	var usage syscall.Rusage
	must.Succeed(b, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return usage.Utime.Nano() + usage.Stime.Nano()
}

func code128PNG(data string) (barcode.Barcode, error) {
	kind, _ := symbology.Lookup("C128")
	code, err := kind.Encode(data)
	if err == nil {
		draw.Linear(kind.Name, code, 2, 80, 0, 0).PNG()
	}
	return code, err
}

func qrCode(data string) (barcode.Barcode, error) { return qrcode.Encode(data, qrcode.M) }
