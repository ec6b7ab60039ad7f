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

	"svcapi/test/capacity"
)

var (
	search = flag.Bool("search", false, "find the ceilings, which takes minutes")
	rate   = flag.Float64("rate", 0, "with -search: hold this rate to be carried, and find none")
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

// busiest returns the units in a second of the most loaded key that has a limit.
func (o *outcome) busiest() float64 {
	most := 0.0
	for one, l := range o.loads {
		if !slices.Contains(o.exempt, one) {
			most = max(most, l.units)
		}
	}
	return most
}

// refused lists the tables that refused calls, the table with the most refused calls first.
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
	w := o.loads[wallet]
	text := fmt.Sprintf("%.1f/s: %.2f %% of %d paid, %d ms beyond the work, 99 %% in %d ms; units/s on the busiest wallet %.0f, ledger %.0f, "+
		"counter %.0f; a write of the wallet %.2f units; %d instances left %d leases of %d slots",
		o.rate, 100*float64(o.paid)/float64(max(o.offered, 1)), o.offered, o.median.Milliseconds(), o.p99.Milliseconds(), w.units, o.loads[ledger].units,
		o.loads[counter].units, w.unitsAWrite, o.instances, o.left[0], o.left[1])
	if refused := o.refused(); refused != "none" {
		text += fmt.Sprintf("; refused calls: %s; responses %v", refused, o.statuses)
	}
	return text
}

// sized gives an offer the time that its rate needs: some thousand requests, and at least two seconds.
func sized(o offer, rate float64) offer {
	o.rate = rate
	o.ramp = 20 * time.Second // as long as a lease lives
	o.warm = o.ramp + time.Second + o.takes
	o.span = time.Duration(min(max(2, 2000/rate), 25) * float64(time.Second)).Truncate(time.Second)
	return o
}

// ceiling returns the outcomes of the highest rate that is carried and of the lowest rate found that is not.
func ceiling(t *testing.T, o offer) (carried, over *outcome) {
	t.Helper()
	for rate := o.rate; ; {
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
			// A wallet's write costs the more, the more is pending: its load grows with up to the square of the rate.
			rate *= max(math.Sqrt(capacity.WriteLimit/max(out.busiest(), 1)), 1.08)
		case over.rate/carried.rate <= precision:
			return carried, over
		default:
			rate = math.Sqrt(carried.rate * over.rate)
		}
	}
}

// cases are the operations whose ceilings are sought, and the rate that the search begins with.
var cases = []struct {
	work   work
	exempt []table
	from   float64
}{
	{barcode(0), nil, 350},
	{barcode(50 * time.Millisecond), nil, 200},
	{barcode(250 * time.Millisecond), nil, 90},
	{barcode(time.Second), nil, 50},
	{sms(0), nil, 350},
	{sms(250 * time.Millisecond), nil, 90},
	// The next limit beyond the wallet, and then beyond the ledger.
	{barcode(0), []table{wallet}, 800},
	{barcode(0), []table{wallet, ledger}, 800},
	{sms(250 * time.Millisecond), []table{wallet}, 400},
	{sms(250 * time.Millisecond), []table{wallet, ledger}, 800},
}

// TestCeiling finds what one project can ask for with -search. Without it, the test checks that a moderate
// rate is carried with no refused call.
func TestCeiling(t *testing.T) {
	if !*search {
		for _, w := range []work{barcode(0), sms(250 * time.Millisecond)} {
			out := run(t, offer{work: w, rate: 60, warm: time.Second, span: 2 * time.Second, seed: *seed})
			if out.paid != out.offered || out.refused() != "none" {
				t.Errorf("%s: %s", w, out)
			}
		}
		return
	}
	var lines []string
	began := time.Now()
	for _, c := range cases {
		name := c.work.String()
		for _, one := range c.exempt {
			name += fmt.Sprintf(" no %s limit", one)
		}
		t.Run(name, func(t *testing.T) {
			fmt.Printf("%s, after %s\n", name, time.Since(began).Truncate(time.Second))
			if *rate > 0 {
				out := run(t, sized(offer{work: c.work, exempt: c.exempt, seed: *seed}, *rate))
				fmt.Printf("    %s\n", out)
				if !out.carried() {
					t.Errorf("%.1f/s are not carried", *rate)
				}
				return
			}
			carried, over := ceiling(t, offer{work: c.work, exempt: c.exempt, rate: c.from, seed: *seed})
			first, _, _ := strings.Cut(over.refused(), " ")
			lines = append(lines, fmt.Sprintf("%s\t%.0f\t%s\t%.2f\t%d ms\t%.0f", name, carried.rate, first,
				carried.loads[wallet].unitsAWrite, carried.p99.Milliseconds(), float64(over.paid)/over.span.Seconds()))
		})
	}
	if len(lines) == 0 {
		return
	}
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(out, "\nOne project, seed %d, in %s\n", *seed, time.Since(began).Truncate(time.Second))
	fmt.Fprintln(out, "operation\tpaid/s\tfirst to refuse\tunits a write of the wallet\t99 % beyond the work\tpaid/s just above")
	for _, line := range lines {
		fmt.Fprintln(out, line)
	}
	out.Flush()
}

// TestRamp checks that a project's rate grows from nothing without a refused request: to 1,000 a second in 10 s with -search.
func TestRamp(t *testing.T) {
	o := offer{work: sms(250 * time.Millisecond), rate: 200, ramp: 2 * time.Second, warm: 2 * time.Second, span: time.Second, seed: *seed}
	if *search {
		o.rate, o.ramp, o.warm, o.span = 1000, 10*time.Second, 10*time.Second, 5*time.Second
	}
	if out := run(t, o); len(out.statuses) != 1 || out.statuses[200] == 0 {
		t.Errorf("%v: %s", out.statuses, out)
	} else if *search {
		fmt.Println(out)
	}
}

// TestRecovery asks for more than the ramp of leases can carry, then for less: the project recovers at once.
// Reservations that overload leaves in the wallet would make every write of the wallet dearer until the settling function runs.
func TestRecovery(t *testing.T) {
	out := run(t, offer{
		work: barcode(250 * time.Millisecond), before: 400, warm: 5 * time.Second, rate: 115, span: 3 * time.Second, seed: *seed,
	})
	if !out.carried() {
		t.Errorf("after overload: %s", out)
	}
	if out.statuses[500] == 0 {
		t.Errorf("it was no overload: %s", out)
	}
}
