package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"svcapi/functions/sms/vendors"
	"svcapi/local/engine"
	"svcapi/local/sandbox"
	"svcapi/shared/burner"
	"svcapi/shared/project"
	"svcapi/shared/upstream"
	"svcapi/shared/wallet"
	"svcapi/test/enginetest"
)

// uncertainSMS charges a project for an SMS with an unknown outcome, as the function does.
func (f *fixture) uncertainSMS(projectID, requestID string) string {
	f.t.Helper()
	credits := f.stack().Credits
	r := &wallet.Reservation{
		Project: projectID, Began: time.Now(), Credits: 10_000, Price: wallet.SMS,
		Environment: "production", RequestID: requestID, Irrevocable: true,
	}
	f.must(credits.Reserve(f.t.Context(), r))
	f.must(credits.Mark(f.t.Context(), r))
	f.must(credits.Capture(f.t.Context(), r, wallet.Outcome{Uncertain: true, Vendor: "quicksend",
		Reference: f.reference(projectID, "quicksend", "", string(r.Key))}))
	credits.Remove(f.t.Context(), r)
	return string(r.Key)
}

// reference seals a reference of a send through the service's own account at the sandbox vendor.
func (f *fixture) reference(projectID, vendor, id, key string) string {
	f.t.Helper()
	rec, err := f.stack().Load(f.t.Context(), projectID)
	f.must(err)
	by := upstream.Account{Integration: project.Integration{Vendor: vendor}, Owner: upstream.ManagedOwner,
		Endpoint: f.sandbox.URL + "/" + vendor, Secrets: sandbox.Account(vendor)}
	sealer := vendors.NewSealer(&rec.Project, project.Production)
	return sealer.Seal(by, vendors.SendKey(sealer.Scope+key, 0), id, "+94771234567", "m")
}

// TestFind: from a number and a time to the vendor's present state, by the hash of the number in the log
// (docs/decisions/operating.md#logged-sends).
func TestFind(t *testing.T) {
	f := newFixture(t, "project create Acme --id acme", "project create Other --id other",
		"credit grant acme 30000 --reason x")
	f.runAll([]call{
		shows("vendor account sms twilio --env prod --secrets -").given(accountAt("twilio")),
		{args: "integration set acme sms twilio --env prod --mode managed --setting sender~id=Acme"},
		shows("vendor account sms quicksend --env prod --secrets -").given(accountAt("quicksend")),
		{args: "integration set acme sms quicksend --env prod --mode managed --inactive --setting sender~id=Acme"},
	})
	uncertain := f.uncertainSMS("acme", otherID)
	rec, err := f.stack().Load(t.Context(), "acme")
	f.must(err)
	twilio := f.reference("acme", "twilio", "SM00000000000000000000000000000000", "k")
	none := f.reference("acme", "quicksend", "7", "k")
	to, another := rec.LoggedNumber("+94771234567"), rec.LoggedNumber("+94771234568")
	line := func(id, age, sends string) string {
		past, _ := time.ParseDuration(age)
		return fmt.Sprintf(`{"timestamp":%q,"operation":"sms_send","project":"acme","environment":"production","mode":`+
			`"managed","status":200,"vendor":"twilio","Credits":10000,"request_id":%q,%s}`+"\n",
			time.Now().Add(-past).UTC().Format(time.RFC3339Nano), id, sends)
	}
	second, third := strings.Replace(loggedID, "9", "8", 1), strings.Replace(loggedID, "9", "7", 1)
	f.must(os.WriteFile(filepath.Join(f.dir, "sms.log"), []byte(
		line(loggedID, "1m", fmt.Sprintf(`"sends":[{"to":%q,"state":"accepted","vendor":"twilio","vendor_id":"SM0",`+
			`"reference":%q},{"to":%q,"state":"rejected","vendor":"twilio"}]`, to, twilio, another))+
			line(second, "3h", fmt.Sprintf(`"sends":[{"to":%q,"state":"accepted","vendor":"quicksend","reference":%q}]`, to,
				none))+
			line(third, "3h", fmt.Sprintf(`"sends":[],"further_to":[%q]`, to))), 0o600))
	argument := func(text string) string { return strings.ReplaceAll(text, "_", "~") } // as call.args has it
	find := "sms find acme --to 0771234567 "
	clock := time.Now().Add(-3 * time.Hour).UTC().Format("2006-01-02T15:04")
	f.runAll([]call{
		misuse("sms find acme --to 12", "--to is 07XXXXXXXX"),
		misuse(find+"--around noon", "--around is a time such as"),
		misuse(find+"--around 14:05 --from 14:00", "--around, or --from"),
		misuse(find+"--to-time 14:05", "needs --from"),
		misuse(find+"--from 2026-03-31T14:05 --to-time 2026-03-31T14:05", "ends before"),
		shows(find+"--last 1h", `TIME +REQUEST +STATE .*\n\S+ \S+ UTC +`+loggedID+
			` +accepted +twilio +SM0 +sms_send +production +managed +10,000 +`+twilio+`\n$`),
		shows(find+"--env dev", "No message to that number in the logs.*svc sms uncertain list acme"),
		shows("sms find other --to 0771234567", "No message to that number"),
		shows(find+"--around "+clock, second+` +accepted +quicksend`, third+` +not_in_log +twilio`).without(loggedID),
		shows(find+"--from "+clock+" --to-time "+time.Now().UTC().Format(time.RFC3339)+" --output csv", loggedID,
			`^TIME,REQUEST,STATE,VENDOR,VENDOR ID,`),

		notFound("sms status nonsense", "no project has this reference", "svc sms find"),
		notFound("sms status "+strings.Replace(loggedID, "9", "6", 1), "no reference of request 6ed.*\n.*svc logs 6ed"),
		notFound("sms status "+otherID, "svc sms uncertain ask acme "+uncertain),
		shows("sms status "+loggedID, `acme +production +twilio +not_found +20404 +- `),
		notFound("sms status " + argument(twilio) + " --project other"),
		shows("sms status "+argument(none)+" --project acme", `quicksend +unknown +- +vendor_has_no_status`).
			notes("quicksend reports no state. These vendors do: textlk, ultimatesms, dialogv2, twilio."),

		misuse("sms uncertain ask acme 7", "uncertain list"),
		notFound("sms uncertain ask other "+uncertain, "no such uncertain charge"),
		shows("sms uncertain ask acme "+uncertain, `Vendor +quicksend\n`, `Result +open`).notes("These vendors do: textlk"),
		shows("sms uncertain list acme", uncertain),
	})
}

// TestUncertain: an uncertain SMS stays charged and listed until it is confirmed or refunded, once
// (docs/decisions/money.md#uncertain-sms).
func TestUncertain(t *testing.T) {
	f := newFixture(t, "project create Acme --id acme", "project create Other --id other",
		"credit grant acme 30000 --reason x", "credit grant other 10000 --reason x")
	f.run(shows("sms uncertain list", "No SMS is uncertain"))
	first, second, third := f.uncertainSMS("acme", "r1"), f.uncertainSMS("acme", "r2"), f.uncertainSMS("other", "r3")
	resolve := "sms uncertain resolve acme " + first
	f.runAll([]call{
		shows("sms uncertain list", `PROJECT +ID +TIME`, `acme +`+first+
			` .*:\d\d UTC +10,000 +0.01 +production +quicksend +r1 +- +\S{80,}\n`, second, `other +`+third),
		shows("sms uncertain list acme", first, second).without(third),
		notFound("sms uncertain list nobody"),
		shows("credit ledger acme", "uncertain", "r2"),

		misuse(resolve, "--confirm or --refund"),
		misuse(resolve+" --refund", "--reason"),
		misuse(resolve+" --refund --confirm --reason x", "--confirm or --refund"),
		misuse("sms uncertain resolve acme 7 --refund --reason x", "uncertain list"),
		notFound("sms uncertain resolve acme "+third+" --refund --reason x", "no such uncertain charge"),
		refused("credit refund acme "+first+" --reason x", "is uncertain", "uncertain resolve"),

		shows(resolve+" --refund --reason vendor_has_no_record_of_it", `Credits +10,000 credits \(0.01 USD\)\n`,
			`Resolution +refunded`, `By +local`, `Balance +20,000 credits`),
		shows(resolve+" --refund --reason again", "Reason +vendor has no record of it", "Balance +20,000 credits"),
		refused(resolve+" --confirm --reason again", "resolved already: refunded by local", "final"),
		shows("sms uncertain resolve acme "+second+" --confirm --reason delivered", `Resolution +confirmed`,
			`Balance +20,000 credits`),
		shows("sms uncertain list", third).without("acme"),
		shows("sms uncertain list --all", first+`.* r1 +refunded: vendor has no record of it, by local`, second+
			`.* r2 +confirmed: delivered, by local`, third),
		shows("credit ledger acme --days 2", `captured +-10,000 .* r1 +refunded: vendor has no record of it, by local`,
			`captured +-10,000 .* r2 +confirmed: delivered, by local`,
			`refund +\+10,000 +\+0.01 +sms +production +quicksend +- +r1 +vendor has no record of it, for `+first+`, by local`),
		shows("sms uncertain list --output json", `^\[\n +\{\n +"project_id": "other",\n +"id": "`+third+`",\n`,
			`"credits": 10000,\n`).without("acme"),
		shows("credit ledger acme --days 2 --output json", `"refunds": "`+first+`"`,
			`"resolution": \{\n +"verdict": "refunded"`),
	})
}

// TestSMSTest: one message goes through the integration's account after a confirmation, svc prints the outcome, and no
// credits move.
func TestSMSTest(t *testing.T) {
	f := newFixture(t, "project create Acme --id acme")
	vendors := f.sandbox
	f.must(vendors.SetRules(sandbox.Rule{To: "0770000009", Outcome: sandbox.Closed}))
	f.runAll([]call{
		shows("integration set acme sms quicksend --mode byok --setting sender~id=Acme --secrets -").
			given(accountAt("quicksend")),
		shows("integration set acme sms twilio --mode byok --inactive --setting sender~id=Acme --setting " +
			"endpoint=http://127.0.0.1:1 --secrets -").given(accountAt("twilio")),
		shows("vendor account sms textlk --env prod --secrets -").given(accountAt("textlk")),
		{args: "integration set acme sms textlk --env prod --mode managed --setting sender~id=Acme"},
		{args: "integration set acme sms aws --env prod --mode managed --inactive --setting sender~id=Acme"},
		{args: "integration set acme sms notifylk --mode byok --incomplete --inactive"},
	})
	const test = "sms test acme quicksend --to "
	shown := []string{
		`From +acme \(development\) through QuickSend.lk, sender Acme`, `Endpoint ` + vendors.URL + `/quicksend\n`,
		`To +\+94771234567`, `Message +"A test message of SVC API.", SMS units: 1`,
		`Paid by +the project's own account at QuickSend.lk; the project's credits are not charged`,
	}
	f.runAll([]call{
		refused(test+"0771234567", append(shown, `Send it\?\nsvc: Not confirmed. Run again with --yes.`)...),
		refused(test+"0771234567", append(shown, `Send it\? \[y/N\] svc: Not confirmed.`)...).given("n\n").typing(),
		misuse("sms test acme quicksend --yes", "--to is"),
		misuse(test+"0771234567 --yes --message "+strings.Repeat("a", 460), "1 to 3 SMS units, not 4"),
		notFound(test+"0771234567 --yes --env prod", "production/sms/quicksend"),
		refused("sms test acme notifylk --to 0771234567 --yes", "lacks"),
	})
	if calls := vendors.Calls(); len(calls) != 0 {
		t.Fatalf("sent without a yes: %v", calls)
	}
	f.runAll([]call{
		shows(test+"0771234567", `Outcome +accepted by QuickSend.lk`, `Status +\S`, `ID +\d`).given("y\n").typing().
			notes(shown...),
		shows(test+"+94771234567 --yes --message ආයුබෝවන්", "accepted"),
		refused(test+"0770000001 --yes", "rejected: the vendor refused the message", "Nothing was sent"),
		refused(test+"0770000002 --yes", "rejected: the vendor refused the account or its key", "integration set --ask"),
		fails(test+"0770000003 --yes", "uncertain: the vendor's response is not valid", "may have been sent"),
		fails(test+"0770000009 --yes", "uncertain: the request was sent, and no response came", "may have been sent"),
		fails("sms test acme twilio --to 0771234567 --yes", "not sent: the vendor could not be reached"),
		shows("sms test acme textlk --env prod --to 0771234567 --yes", "accepted by Text.lk").
			notes("Paid by +the service's own account at Text.lk"),
		shows("sms test acme textlk --env prod --to 0771234567 --yes --output json", `"outcome": "accepted"`,
			`"mode": "managed"`, `"units": 1`),
		shows("sms test acme aws --env prod --to 0771234567 --yes", "accepted by AWS").
			notes("Signed +by local, your own AWS identity"),
		shows("credit ledger acme", "No entries"),
	})
	if calls := vendors.Calls(); len(calls) != 9 {
		t.Errorf("%d calls reached a vendor, want one for each message: 9", len(calls))
	}
}

// TestBurner: svc normalises a project's own disposable domains as the operation does.
func TestBurner(t *testing.T) {
	f := newFixture(t, "project create Acme --id acme")
	file := f.write("# ours\n\nfile.example\r\n  Other.Example  # twice\nother.example\n")
	f.runAll([]call{
		shows("burner list acme", "The project has no own domains"),
		notFound("burner add nobody a.example"),
		misuse("burner add acme example", `"example" is not a domain`, "two labels"),
		misuse("burner add acme a.example me@b.example", `"me@b.example" is not a domain`),
		shows("burner add acme B.Example a.example bücher.example a.example",
			`a.example +added\nb.example +added\nxn--bcher-kva.example +added\n`),
		shows("burner add acme a.example", `a.example +there already`),
		shows("burner add acme c.example a.example --output json",
			`"domains": \[\n +"c.example"\n +\],\n +"unchanged": \[\n +"a.example"\n +\]`),
		{args: "burner remove acme c.example"},
		misuse("burner add acme *.x.example", `write x.example, which includes its subdomains`),
		shows("burner list acme",
			`DOMAIN +IS\na.example +disposable\nb.example +disposable\nxn--bcher-kva.example +disposable\n`),
		shows("burner remove acme B.EXAMPLE never.example", `b.example +removed\nnever.example +not on the list`),
		shows("burner list acme", `DOMAIN +IS\na.example +disposable\nxn--bcher-kva.example +disposable\n`),
		shows("burner import acme "+file, `file.example +added\nother.example +added\n`),
		misuse("burner import acme -", "line 3:", `"bad domain" is not a domain`).given("good.example\n\nbad domain\n"),
		shows("burner import acme -", "Nothing was changed").given("# none\n"),
		shows("burner list", "No domain is allowed for the stage"),
		notFound("burner list nobody"),
		notFound("burner allow a.example --project nobody"),
		notFound("burner allow a.example --project="),
		shows("burner allow a.example x.example", `a.example +allowed\nx.example +allowed\n`),
		shows("burner list", `a.example +allowed\nx.example +allowed\n`),
		shows("burner deny a.example b.example", `a.example +denied\nb.example +not allowed before\n`),
		shows("burner list --output json", `"project_id": "",\n +"domains": \[\],\n +"allowed": \[\n +"x.example"\n`),
		// A project's domain has one judgement: the last.
		shows("burner allow Xn--Bcher-Kva.example y.example --project acme",
			`xn--bcher-kva.example +allowed\ny.example +allowed\n`),
		shows("burner allow y.example --project acme", `y.example +allowed already\n`),
		shows("burner remove acme y.example", `y.example +not on the list`),
		shows("burner deny a.example --project acme", `a.example +not allowed before`),
		shows("burner add acme xn--bcher-kva.example", `xn--bcher-kva.example +added`),
		shows("burner list acme", `xn--bcher-kva.example +disposable\ny.example +allowed\n`),
		misuse("burner import acme /nowhere", "no such file"),
		shows("burner status", "The published lists were not fetched yet"),
	})
	judged := burner.NewStore(engine.Client(enginetest.URL(t)), "svc-"+f.stage+"-projects")
	f.must(judged.PutDifference(t.Context(), burner.Difference{Outcome: burner.Outcome{
		Fetched: time.Now().Add(-50 * time.Hour), Tried: time.Now(), Failure: "status 404",
		Sources: map[string]int{"https://a.example/list": 1200},
		Domains: 151_000, Added: 30, Removed: 152,
	}}))
	f.runAll([]call{
		shows("burner status", `Age +50h0m0s`,
			`Failure +status 404\nDomains +151,000\nAdded +30\nRemoved +152\n\nSOURCE +DOMAINS\nhttps://a.example/list +1,200`),
		shows("burner list acme --output json", `"domains": \[\n +"a.example",\n +"file.example",\n +"other.example",\n `+
			`+"xn--bcher-kva.example"\n +\],\n +"allowed": \[\n +"y.example"\n +\]\n\}\n$`),
	})
}

func TestRates(t *testing.T) {
	f := newFixture(t)
	f.runAll([]call{
		shows("rates show", "No rates yet", `openexchangerates +-`),
		notFound("rates show USD LKR", "svc rates sync"),
		shows("rates pin --off --reason x").notes("No source is pinned"),
		shows("rates history", "Nothing has happened"),
		// Without an account svc uses the source that needs none.
		shows("rates sync", `openexchangerates +skipped +.*app_id`, `frankfurter +taken`, `cbsl +taken`),
		shows("rates show", `Source +frankfurter`, `Pinned +no`, `frankfurter +20\d\d-.*UTC`,
			`JPY +1\.9318 +2\.0071 .* buy central sell`),
		shows("vendor account currency openexchangerates --env production --secrets -").given(accountAt("openexchangerates")),
		shows("rates sync", `openexchangerates +taken`),
		shows("rates show USD LKR", `1 USD = 304\.718462 LKR`, `Source +openexchangerates`, "the source's own number"),
		shows("rates show eur lkr", `1 EUR = 352\.6311634 LKR`, `304\.718462 LKR divided by 0\.864128 EUR, each for 1 USD`),
		shows("rates show USD LKR-SELL", `1 USD = 308\.7702 LKR-SELL`, `Source +cbsl`, "central bank's own number"),
		shows("rates show CHF LKR-SELL", `1 CHF = 378\.3292221`, "central bank has no usable value"),
		shows("rates show LKR LKR", "1 LKR = 1 LKR", "to itself"),
		notFound("rates show USD XYZ"),
		misuse("rates show USD", "two codes"),
		notFound("rates show --project nobody"),
		shows("rates show USD LKR --output json", `"rate": 304\.718462`, `"made": "the source's own number"`),
		shows("rates show --output json", `"central_bank"`, `"rate": 301\.2175`, `"pinned": null`,
			`"source": "exchangerateapi"`),
		misuse("rates pin frankfurter", "--reason"),
		misuse("rates pin --reason why"),
		misuse("rates pin frankfurter --off --reason why"),
		misuse("rates pin nobody --reason why", "the sources are openexchangerates, exchangerateapi, frankfurter"),
		shows("rates pin frankfurter --reason a_wrong_LKR", `frankfurter +taken`),
		shows("rates show", `Source +frankfurter`, `Pinned +to frankfurter since .* by local: a wrong LKR`),
		shows("rates history USD LKR", `frankfurter +taken +local +- +304\.718462 +frankfurter`,
			`frankfurter +pinned +local +a wrong LKR +- +-`, `openexchangerates +taken`),
		shows("rates pin --off --reason corrected", `openexchangerates +taken`),
		shows("rates history --limit 2", `openexchangerates +taken`, `unpinned`).without("frankfurter"),
	})
	// After a failure the rates in use stay, and svc shows the failure.
	f.must(f.sandbox.SetRules(sandbox.Rule{Outcome: sandbox.ServerError}))
	f.runAll([]call{
		fails("rates sync", "openexchangerates failed: .*HTTP 500", "no source returned valid rates",
			"The rates in use stay"),
		shows("rates show", `Source +openexchangerates`, `openexchangerates .*HTTP 500`),
		fails("rates pin exchangerateapi --reason why", "The choice is stored"),
		shows("rates show USD LKR", `304\.718462`),
	})
}
