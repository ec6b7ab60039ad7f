package main

import (
	"strings"
	"testing"

	"svcapi/cmd/svc/app"
	"svcapi/local/sandbox"
)

func TestRates(t *testing.T) {
	f := newFixture(t)
	f.runAll([]call{
		{args: "rates show", out: []string{"No rates yet", `openexchangerates +-`}},
		{args: "rates show USD LKR", exit: app.ExitNotFound, errs: []string{"svc rates sync"}},
		{args: "rates pin --off --reason x", errs: []string{"No source is pinned"}},
		{args: "rates history", out: []string{"Nothing has happened"}},
		// Without an account svc uses the source that needs none.
		{args: "rates sync", out: []string{`openexchangerates +skipped +.*app_id`, `frankfurter +taken`, `cbsl +taken`}},
		{args: "rates show", out: []string{`Source +frankfurter`, `Pinned +no`, `frankfurter +20\d\d-.*UTC`,
			`JPY +1\.9318 +2\.0071 .* buy central sell`}},
		{args: "vendor account currency openexchangerates --env production --secrets -",
			stdin: `{"app_id":"` + sandbox.OpenExchangeRatesAppID + `"}`},
		{args: "rates sync", out: []string{`openexchangerates +taken`}},
		{args: "rates show USD LKR", out: []string{`1 USD = 304\.718462 LKR`, `Source +openexchangerates`,
			"the source's own number"}},
		{args: "rates show eur lkr", out: []string{`1 EUR = 352\.6311634 LKR`,
			`304\.718462 LKR divided by 0\.864128 EUR, each for 1 USD`}},
		{args: "rates show USD LKR-SELL",
			out: []string{`1 USD = 308\.7702 LKR-SELL`, `Source +cbsl`, "central bank's own number"}},
		{args: "rates show CHF LKR-SELL", out: []string{`1 CHF = 378\.3292221`, "central bank has no usable value"}},
		{args: "rates show LKR LKR", out: []string{"1 LKR = 1 LKR", "to itself"}},
		{args: "rates show USD XYZ", exit: app.ExitNotFound},
		{args: "rates show USD", exit: app.ExitUsage, errs: []string{"two codes"}},
		{args: "rates show --project nobody", exit: app.ExitNotFound},
		{args: "rates show USD LKR --output json", out: []string{`"rate": 304\.718462`, `"made": "the source's own number"`}},
		{args: "rates show --output json",
			out: []string{`"central_bank"`, `"rate": 301\.2175`, `"pinned": null`, `"source": "exchangerateapi"`}},
		{args: "rates pin frankfurter", exit: app.ExitUsage, errs: []string{"--reason"}},
		{args: "rates pin --reason why", exit: app.ExitUsage},
		{args: "rates pin frankfurter --off --reason why", exit: app.ExitUsage},
		{args: "rates pin nobody --reason why", exit: app.ExitUsage,
			errs: []string{"the sources are openexchangerates, exchangerateapi, frankfurter"}},
		{args: "rates pin frankfurter --reason a_wrong_LKR", out: []string{`frankfurter +taken`}},
		{args: "rates show", out: []string{`Source +frankfurter`, `Pinned +to frankfurter since .* by local: a wrong LKR`}},
		{args: "rates history USD LKR",
			out: []string{`frankfurter +taken +local +- +304\.718462 +frankfurter`,
				`frankfurter +pinned +local +a wrong LKR +- +-`, `openexchangerates +taken`}},
		{args: "rates pin --off --reason corrected", out: []string{`openexchangerates +taken`}},
		{args: "rates history --limit 2", out: []string{`openexchangerates +taken`, `unpinned`}, absent: "frankfurter"},
	})
	// After a failure the rates in use stay, and svc shows the failure.
	f.must(f.sandbox.SetRules(sandbox.Rule{Outcome: sandbox.ServerError}))
	f.runAll([]call{
		{args: "rates sync", exit: app.ExitFailed,
			errs: []string{"openexchangerates failed: .*HTTP 500", "no source returned valid rates", "The rates in use stay"}},
		{args: "rates show", out: []string{`Source +openexchangerates`, `openexchangerates .*HTTP 500`}},
		{args: "rates pin exchangerateapi --reason why", exit: app.ExitFailed, errs: []string{"The choice is stored"}},
		{args: "rates show USD LKR", out: []string{`304\.718462`}},
	})
	if strings.Contains(f.printed.String(), sandbox.OpenExchangeRatesAppID) {
		t.Error("the app ID was printed")
	}
}
