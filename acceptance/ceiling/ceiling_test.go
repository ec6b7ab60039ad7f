package ceiling

import (
	"cmp"
	"flag"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"
)

var (
	search = flag.Bool("search", false, "find the ceilings, which takes minutes, instead of trying a few rates")
	parts  = flag.Int("parts", 1, "of the project")
	seed   = flag.Uint64("seed", 1, "of arrivals and latencies")
)

// A rate is carried when so many of its requests are paid, and 99 of 100 take no longer than this beyond their work.
const (
	enough  = 0.999
	longest = 200 * time.Millisecond
)

// precision is how close below the lowest rate that was not carried a ceiling is.
const precision = 1.04

func (o *outcome) carried() bool {
	return float64(o.paid) >= enough*float64(o.offered) && o.p99 <= longest
}

// busiest is the table whose most loaded key has the least capacity left.
func (o *outcome) busiest() (table, load) {
	var found table
	for _, one := range []table{wallet, counter, ledger} {
		if !slices.Contains(o.exempt, one) && (found == "" || o.loads[one].units > o.loads[found].units) {
			found = one
		}
	}
	return found, o.loads[found]
}

// refused is the tables that refused calls, the one that refused most first.
func (o *outcome) refused() string {
	var tables []table
	for one, l := range o.loads {
		if l.refused > 0 {
			tables = append(tables, one)
		}
	}
	slices.SortFunc(tables, func(a, b table) int { return cmp.Compare(o.loads[b].refused, o.loads[a].refused) })
	var list []string
	for _, one := range tables {
		list = append(list, fmt.Sprintf("%s %d", one, o.loads[one].refused))
	}
	return cmp.Or(strings.Join(list, ", "), "none")
}

func (o *outcome) String() string {
	var loads []string
	for _, one := range []table{wallet, ledger, counter} {
		loads = append(loads, fmt.Sprintf("%s %.0f", one, o.loads[one].units))
	}
	w := o.loads[wallet]
	return fmt.Sprintf("%.1f/s: %.2f %% of %d paid, %s and %s (99 %%) beyond the work; units a second of the busiest key: %s; "+
		"a wallet's write %.2f units, its item %d bytes, at most %d; refused: %s; %d instances",
		o.rate, 100*float64(o.paid)/float64(max(o.offered, 1)), o.offered, o.median, o.p99, strings.Join(loads, ", "),
		w.unitsAWrite, w.meanBytes, w.mostBytes, o.refused(), o.instances)
}

// sized gives an offer the time that its rate needs: some thousand requests, and at least two seconds.
func sized(o offer, rate float64) offer {
	o.rate = rate
	o.warm = time.Second + o.takes
	o.span = time.Duration(min(max(2, 2000/rate), 25) * float64(time.Second)).Truncate(time.Second)
	return o
}

// ceiling is the highest rate that is carried, and the outcome of the lowest one found that is not.
func ceiling(t *testing.T, o offer) (carried, over *outcome) {
	t.Helper()
	for rate := 60 * float64(o.parts); ; {
		out := run(t, sized(o, rate))
		fmt.Printf("    %s\n", out)
		if out.carried() {
			carried = out
		} else {
			over = out
		}
		switch {
		case t.Failed():
			t.FailNow()
		case carried == nil:
			rate /= 1.5
		case over == nil:
			// A wallet's write costs the more, the more is in flight: its load grows with the square of the rate.
			_, busiest := out.busiest()
			rate *= min(max(math.Sqrt(1000/max(busiest.units, 1)), precision), 4)
		case over.rate/carried.rate <= precision:
			return carried, over
		default:
			rate = math.Sqrt(carried.rate * over.rate)
		}
	}
}

// TestCeiling finds what one project can ask for with -search. Without it, it holds a moderate rate to be carried with no
// call refused: what the figures rest on works.
func TestCeiling(t *testing.T) {
	if !*search {
		for _, w := range []work{barcode(0), sms(250 * time.Millisecond)} {
			out := run(t, offer{work: w, rate: 60, warm: time.Second, span: 2 * time.Second, seed: *seed, parts: *parts})
			if out.paid != out.offered || out.refused() != "none" {
				t.Errorf("%s: %s", w, out)
			}
		}
		return
	}
	var lines []string
	note := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	began := time.Now()
	for _, c := range []struct {
		work   work
		exempt []table
	}{
		{barcode(0), nil},
		{barcode(50 * time.Millisecond), nil},
		{barcode(250 * time.Millisecond), nil},
		{barcode(time.Second), nil},
		{sms(0), nil},
		{sms(250 * time.Millisecond), nil},
		// What comes next once the hottest is split.
		{barcode(0), []table{wallet}},
		{barcode(0), []table{wallet, ledger}},
		{sms(250 * time.Millisecond), []table{wallet}},
		{sms(250 * time.Millisecond), []table{wallet, ledger}},
	} {
		name := c.work.String()
		if c.exempt != nil {
			name += fmt.Sprintf(", without limit: %v", c.exempt)
		}
		t.Run(name, func(t *testing.T) {
			fmt.Printf("%s (%s)\n", name, time.Since(began).Truncate(time.Second))
			carried, over := ceiling(t, offer{work: c.work, exempt: c.exempt, seed: *seed, parts: *parts})
			first, _, _ := strings.Cut(over.refused(), " ")
			w := carried.loads[wallet]
			note("%s\t%s\t%v\t%.0f\t%s\t%.2f\t%d\t%d\t%s\t%.0f", c.work.price, c.work.takes, c.exempt, carried.rate, first,
				w.unitsAWrite, w.meanBytes, w.mostBytes, carried.p99, float64(over.paid)/over.span.Seconds())
		})
	}
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(out, "\nOne project in %d parts, seed %d, %s\n", *parts, *seed, time.Since(began).Truncate(time.Second))
	fmt.Fprintln(out, "operation\twork\twithout limit\tpaid/s\tfirst to refuse\tunits/write\twallet bytes\tat most\tp99 beyond work\tpaid/s just above")
	for _, line := range lines {
		fmt.Fprintln(out, line)
	}
	out.Flush()
}
