package acceptance

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"svcapi/local/sandbox"
	"svcapi/shared/project"
	"svcapi/shared/wallet"
	"svcapi/test/must"
)

// perUnit is the price of an SMS unit on the local stack.
func perUnit() int64 { return fixture.stack.Prices[wallet.SMS] }

// newSandbox plays vendors for one test alone.
func newSandbox(t *testing.T) *sandbox.Server {
	t.Helper()
	s, err := sandbox.Start()
	must.Succeed(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

// TestSendForReal sends one message as a client would: on a deployed stack, with ACCEPT_SENDS=1, through the vendor
// ACCEPT_VENDOR, Managed, to the number ACCEPT_TO.
func TestSendForReal(t *testing.T) {
	vendor, to := "twilio", number()
	if fixture.stack == nil {
		if os.Getenv("ACCEPT_SENDS") != "1" {
			leave(t, " (ACCEPT_SENDS=1)")
		}
		vendor, to = os.Getenv("ACCEPT_VENDOR"), os.Getenv("ACCEPT_TO")
	}
	t.Parallel()
	const credits = 10_000_000
	p := plan{credits: credits, integrations: []integration{{vendor: vendor, mode: project.Managed}}}.make(t)
	a := request{path: send, body: single(to, "SVC API acceptance test"), as: p.dev}.do(t)
	if provider := a.provider(t); !a.is(200, "") || provider.Vendor != vendor || provider.Status == "" ||
		a.Data.CreditsCharged <= 0 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	if got := p.balance(t); got != credits-a.Data.CreditsCharged {
		t.Errorf("balance %d after %d were charged of %d", got, a.Data.CreditsCharged, credits)
	}
	if e := p.ledger(t)[a.RequestID]; e.State != "captured" || e.Credits != a.Data.CreditsCharged {
		t.Errorf("ledger %+v", e)
	}
}

// docs/decisions/money.md#own-prices: the project's own price is charged, and is what a 402 lacks; another project is
// charged the listed price.
func TestOwnPrice(t *testing.T) {
	local(t)
	t.Parallel()
	via := []integration{{vendor: "twilio", mode: project.Managed}}
	p, other := plan{credits: 9, integrations: via}.make(t), plan{credits: 1_000_000, integrations: via}.make(t)
	svc[any](t, "", "price", "set", p.id, wallet.SMS, "7")
	for _, c := range []struct {
		as     *tenant
		status int
		want   string
		left   int64
	}{
		{p, 200, `"credits_charged":7,`, 2}, {p, 402, `"price":7`, 2},
		{other, 200, fmt.Sprintf(`"credits_charged":%d,`, perUnit()), 1_000_000 - perUnit()},
	} {
		a := request{path: send, body: single(number(), "Hello"), as: c.as.dev}.do(t)
		if a.status != c.status || !strings.Contains(string(a.body), c.want) || c.as.balance(t) != c.left {
			t.Errorf("%d %s, balance %d, want %+v", a.status, a.body, c.as.balance(t), c)
		}
	}
	st := svc[struct {
		Closing int64 `json:"closing_balance"`
		Prices  []entry
	}](t, "", "usage", "statement", p.id)
	if st.Closing != 2 || len(st.Prices) != 1 || st.Prices[0].Actor == "" {
		t.Errorf("%+v", st)
	}
}

// docs/decisions/money.md#wallet: 300 requests, 64 at a time, on a wallet for exactly 100: 100 succeed, the rest are
// 402, the balance is 0 and the ledger has 100 entries.
func TestRace(t *testing.T) {
	local(t)
	p := plan{credits: 100 * perUnit(), integrations: []integration{{vendor: "twilio", mode: project.Managed}}}.make(t)
	to := numberBlock(300)
	succeeded, messages := 0, 0
	for _, a := range atOnce(300, 64, func(i int) *response {
		return request{path: send, body: single(to[i], "m"), as: p.dev}.do(t)
	}) {
		switch {
		case a.is(200, ""):
			succeeded++
		case !a.is(402, "insufficient_funds"):
			t.Errorf("%d %s", a.status, a.body)
		}
	}
	for _, n := range to {
		messages += len(sent(n))
	}
	if succeeded != 100 || messages != 100 {
		t.Errorf("%d requests succeeded, %d messages were sent, want 100", succeeded, messages)
	}
	if got := p.balance(t); got != 0 {
		t.Errorf("balance %d, want 0", got)
	}
	captured := 0
	for _, e := range p.ledger(t) {
		if e.State == "captured" && e.Credits == perUnit() && !e.Uncertain {
			captured++
		} else if e.State != "grant" {
			t.Errorf("ledger %+v", e)
		}
	}
	if captured != 100 {
		t.Errorf("%d captured entries, want 100", captured)
	}
}
