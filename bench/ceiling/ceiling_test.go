package ceiling

import (
	"flag"
	"fmt"
	"testing"
	"time"
)

var (
	rate = flag.Float64("rate", 0, "check that this rate is carried in steady state, which takes minutes")
	seed = flag.Uint64("seed", 1, "of arrivals and latencies")
)

// A rate is carried when so many of its requests are paid, and 99 of 100 take no longer than this beyond their work.
const (
	enough  = 0.999
	longest = 200 * time.Millisecond
)

func (o *outcome) carried() bool {
	return float64(o.paid) >= enough*float64(o.offered) && o.p99 <= longest
}

func (o *outcome) String() string {
	w, l, c := o.loads[wallets], o.loads[ledger], o.loads[counter]
	return fmt.Sprintf("%.1f/s: %.2f %% of %d paid, %d ms beyond the work, 99 %% in %d ms; units/s on the busiest "+
		"wallet %.0f, ledger %.0f, "+
		"counter %.0f; a write of the wallet %.2f units; %d instances left %d leases of %d slots; refused calls %d, %d, "+
		"%d; responses %v",
		o.rate, 100*float64(o.paid)/float64(max(o.offered,
			1)), o.offered, o.median.Milliseconds(), o.p99.Milliseconds(), w.units, l.units,
		c.units, w.unitsAWrite, o.instances, o.left[0], o.left[1], w.refused, l.refused, c.refused, o.statuses)
}

// TestCeiling checks that a project's rate grows from nothing without a refused request, and with -rate that the rate
// is carried 20 s after a growth of 20 s: each instance has a lease, and the leases of the growth end one by one.
func TestCeiling(t *testing.T) {
	grows := func(rate float64, growth, span time.Duration) offer {
		return offer{work: sms(250 * time.Millisecond), rate: rate, ramp: growth, warm: growth, span: span, seed: *seed}
	}
	offers := []offer{grows(200, 2*time.Second, time.Second),
		{work: barcode(0), rate: 60, warm: time.Second, span: 2 * time.Second, seed: *seed}}
	if *rate > 0 {
		offers = []offer{grows(1000, 10*time.Second, 5*time.Second), grows(*rate, 20*time.Second, 5*time.Second)}
		offers[1].warm += 20 * time.Second
	}
	for i, o := range offers {
		t.Run(fmt.Sprintf("%s %.0f", o.price, o.rate), func(t *testing.T) {
			out := run(t, o)
			t.Log(out)
			if !out.carried() || i == 0 && len(out.statuses) > 1 {
				t.Errorf("not carried: %s", out)
			}
		})
	}
}

// TestRecovery asks for more than the ramp of leases can carry, then for less: the project recovers at once.
// Reservations that overload leaves in the wallet would make every write of the wallet dearer until the settling
// function runs.
func TestRecovery(t *testing.T) {
	out := run(t, offer{
		work: barcode(250 * time.Millisecond), before: 400, warm: 5 * time.Second, rate: 115, span: 3 * time.Second,
		seed: *seed,
	})
	if !out.carried() {
		t.Errorf("after overload: %s", out)
	}
	if out.statuses[500] == 0 {
		t.Errorf("it was no overload: %s", out)
	}
}
