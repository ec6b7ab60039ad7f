package acceptance

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"svcapi/local/sandbox"
	"svcapi/shared/credit"
	"svcapi/shared/project"
)

// perUnit is the price of an SMS unit on the local stack.
func perUnit() int64 { return fixture.stack.Prices.Of(credit.SMS) }

// newSandbox plays vendors for one test alone.
func newSandbox(t *testing.T) *sandbox.Server {
	t.Helper()
	s, err := sandbox.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// closedEndpoint is where the vendors of the demo project unreachable are: connections are refused.
func closedEndpoint(t *testing.T) string {
	t.Helper()
	for _, i := range svc[[]struct{ Settings map[string]string }](t, "", "integration", "list", "unreachable") {
		if at := i.Settings["endpoint"]; at != "" {
			return at
		}
	}
	t.Fatal("the demo project unreachable has no endpoints")
	return ""
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
	if a == nil {
		return
	}
	if provider := a.provider(t); !a.is(200, "") || provider.Vendor != vendor || provider.Status == "" || a.Data.CreditsCharged <= 0 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	if got := p.balance(t); got != credits-a.Data.CreditsCharged {
		t.Errorf("balance %d after %d were charged of %d", got, a.Data.CreditsCharged, credits)
	}
	if e := p.ledger(t)[a.RequestID]; e.State != "captured" || e.Credits != a.Data.CreditsCharged {
		t.Errorf("ledger %+v", e)
	}
}

// docs/decisions.md#wallet: 300 requests, 64 at a time, on a wallet for exactly 100: 100 succeed, the rest are 402, the
// balance is 0 and the ledger has 100 entries.
func TestRace(t *testing.T) {
	local(t)
	p := plan{credits: 100 * perUnit(), integrations: []integration{{vendor: "twilio", mode: project.Managed}}}.make(t)
	to := numberBlock(300)
	succeeded, messages := 0, 0
	for _, a := range atOnce(300, 64, func(i int) *response {
		return request{path: send, body: single(to[i], "m"), as: p.dev}.do(t)
	}) {
		switch {
		case a == nil:
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

// A request's charge does not depend on a client that waits: one that goes away is charged for what was sent.
func TestClientGoesAway(t *testing.T) {
	local(t)
	t.Parallel()
	p := plan{credits: 1_000_000, integrations: []integration{{vendor: "twilio", mode: project.Managed}}}.make(t)
	to := number()
	abandon(t, request{path: send, body: single(to, "m"), as: p.dev})
	deadline := time.Now().Add(20 * time.Second)
	for {
		for _, e := range p.ledger(t) {
			if e.State == "captured" {
				if got := p.balance(t); got != 1_000_000-perUnit() || len(sent(to)) != 1 {
					t.Errorf("balance %d, sent %d times", got, len(sent(to)))
				}
				return
			}
		}
		if time.Now().After(deadline) {
			t.Fatal("the message of a client that went away is not charged")
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// docs/decisions.md#units, docs/decisions.md#prices: units, and what a Managed send costs. The unit counter has a test
// of its own.
func TestUnitsAndCredits(t *testing.T) {
	local(t)
	t.Parallel()
	p := plan{credits: 1_000_000, integrations: []integration{{vendor: "twilio", mode: project.Managed}}}.make(t)
	left := int64(1_000_000)
	for message, units := range map[string]int{"x": 1, strings.Repeat("x", 459): 3, strings.Repeat("අ", 68): 2} {
		a := request{path: send, body: single(number(), message), as: p.dev}.do(t)
		if a == nil {
			continue
		}
		price := int64(units) * perUnit()
		left -= price
		if !a.is(200, "") || a.Data.MessageCount != units || a.Data.CreditsCharged != price || a.Data.SendMethod != "single" {
			t.Errorf("%.10s: %d %s, want %d units for %d credits", message, a.status, a.body, units, price)
		}
		if e := p.ledger(t)[a.RequestID]; e.State != "captured" || e.Credits != price || e.Units != units || e.Operation != "sms" || e.Vendor != "twilio" || e.Environment != "development" {
			t.Errorf("%.10s: ledger %+v", message, e)
		}
	}
	if got := p.balance(t); got != left {
		t.Errorf("balance %d, want %d", got, left)
	}
}

// docs/decisions.md#sms-balance: the wallet of a Managed project, without a call to the provider; else the provider's
// own, for every vendor that has a balance call.
func TestBalance(t *testing.T) {
	local(t)
	t.Parallel()
	p := plan{credits: 1_234_567, integrations: []integration{{vendor: "twilio", mode: project.Managed}}}.make(t)
	if a := (request{path: balance, as: p.dev}).do(t); a != nil && (!a.is(200, "") || a.Data.Source != "service_wallet" ||
		a.Data.BalanceFormatted != "1,234,567 credits" || a.Data.ProviderResponse != nil) {
		t.Errorf("Managed: %d %s", a.status, a.body)
	}
	for vendor, want := range map[string]string{
		"quicksend": "1250.50", "notifylk": "3500", "textlk": "950", "ultimatesms": "950", "smslenz": "1450.00", "dialog": "4500.00", "twilio": "12.05 USD",
	} {
		p := plan{integrations: []integration{{vendor: vendor, mode: project.BYOK}}}.make(t)
		a := request{path: balance, body: "{}", as: p.dev}.do(t)
		if a == nil {
			continue
		}
		var response struct{ Balance string }
		err := json.Unmarshal(a.Data.ProviderResponse, &response)
		if !a.is(200, "") || a.Data.Source != "sms_provider_direct" || err != nil || response.Balance == "" || !strings.Contains(a.Data.BalanceFormatted, want) {
			t.Errorf("%s: %d %s, want %s", vendor, a.status, a.body, want)
		}
	}
}
