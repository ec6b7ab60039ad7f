// The command bench compares barcodes with libzint in the same run, turn by turn, by the processor time that both need.
// Its argument is the program that is compiled from zint/zint.c. See the target bench-barcode.
package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/boombuler/barcode"

	"svcapi/functions/barcode/draw"
	"svcapi/functions/barcode/qrcode"
	"svcapi/functions/barcode/symbology"
)

const turns = 9

// comparison is a text that both programs encode.
type comparison struct {
	kind, data string
	count      int // symbols per turn
	encode     func(data string) (barcode.Barcode, error)
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
	fmt.Fprintf(out, "Least processor time of %d turns; the goal is 0.50 of libzint's.\n\n", turns)
	fmt.Fprintln(out, "       bytes  modules    libzint this project  ratio  allocations")
	for _, c := range []comparison{
		{"C128", "SVC-2026/11 00481516", 3000, code128},
		{"QR", "hello, world", 3000, qrCode},
		{"QR", "https://example.com/pay/481516", 2000, qrCode},
		{"QR", strings.Repeat("Two lines of tea, 12 kg; ", 92), 50, qrCode},
	} {
		if err := c.compare(program, out); err != nil {
			return fmt.Errorf("%s, %d bytes: %w", c.kind, len(c.data), err)
		}
	}
	return nil
}

// compare prints the least times of both programs, whose symbols must have equally many modules.
func (c *comparison) compare(program string, out io.Writer) error {
	var zint, own []float64 // nanoseconds per symbol
	var allocations float64
	var modules int
	for range turns {
		var ns float64
		var theirs int
		var printed bytes.Buffer
		cmd := exec.Command(program, c.kind, c.data, strconv.Itoa(c.count))
		cmd.Stderr = &printed
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("%s: %w: %s", program, err, &printed)
		}
		if _, err := fmt.Fscan(&printed, &ns, &theirs); err != nil {
			return err
		}
		zint = append(zint, ns)

		var code barcode.Barcode
		var err error
		start := processorTime()
		allocations = testing.AllocsPerRun(c.count-1, func() { // it makes one run more than asked for
			code, err = c.encode(c.data)
		})
		if err != nil {
			return err
		}
		own = append(own, float64(processorTime()-start)/float64(c.count))
		if modules = code.Bounds().Dx(); modules != theirs {
			return fmt.Errorf("%d modules, libzint has %d", modules, theirs)
		}
	}
	a, b := slices.Min(zint), slices.Min(own)
	fmt.Fprintf(out, "%-5s %6d %8d %7.1f µs   %7.1f µs %6.2f %12.0f\n", c.kind, len(c.data), modules, a/1000, b/1000, b/a, allocations)
	return nil
}

// processorTime returns what this process has used so far.
func processorTime() time.Duration {
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func code128(data string) (barcode.Barcode, error) {
	kind, _ := symbology.Lookup("C128")
	code, err := kind.Encode(data)
	if err == nil {
		draw.Linear(kind.Name, code, 2, 80, 0, 0).PNG()
	}
	return code, err
}

func qrCode(data string) (barcode.Barcode, error) { return qrcode.Encode(data, qrcode.M) }
