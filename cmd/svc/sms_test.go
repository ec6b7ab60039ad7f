package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"svcapi/cmd/svc/app"
	"svcapi/cmd/svc/sms"
	"svcapi/functions/sms/reference"
	"svcapi/local/sandbox"
	"svcapi/shared/project"
	"svcapi/shared/upstream"
	"svcapi/shared/wallet"
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
		Endpoint: f.sandbox.URL + "/" + vendor, Secrets: sandbox.Accounts[vendor]}
	sealer := reference.New(&rec.Project, project.Production)
	return sealer.Seal(by, reference.Key(sealer.Scope+key, 0), id, "+94771234567", "m")
}

// TestFind: from a number and a time to the vendor's present state, by the hash of the number in the log
// (docs/decisions/operating.md#logged-sends).
func TestFind(t *testing.T) {
	f, dir := newFixture(t), t.TempDir()
	f.announce(map[string]any{"log_dir": dir})
	f.runAll([]call{
		{args: "project create Acme --id acme"},
		{args: "project create Other --id other"},
		{args: "credit grant acme 30000 --reason x"},
		{args: "vendor account sms twilio --env prod --secrets -", stdin: `{"account_sid":"` + sandbox.TwilioAccountSID +
			`","auth_token":"` + sandbox.TwilioAuthToken + `"}`},
		{args: "integration set acme sms twilio --env prod --mode managed --setting sender~id=Acme"},
		{args: "vendor account sms quicksend --env prod --secrets -", stdin: `{"email":"` + sandbox.QuickSendEmail +
			`","api_key":"` + sandbox.QuickSendAPIKey + `"}`},
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
	f.must(os.WriteFile(filepath.Join(dir, "sms.log"), []byte(
		line(loggedID, "1m", fmt.Sprintf(`"sends":[{"to":%q,"state":"accepted","vendor":"twilio","vendor_id":"SM0",`+
			`"reference":%q},{"to":%q,"state":"rejected","vendor":"twilio"}]`, to, twilio, another))+
			line(second, "3h", fmt.Sprintf(`"sends":[{"to":%q,"state":"accepted","vendor":"quicksend","reference":%q}]`, to,
				none))+
			line(third, "3h", fmt.Sprintf(`"sends":[],"further_to":[%q]`, to))), 0o600))
	argument := func(text string) string { return strings.ReplaceAll(text, "_", "~") } // as call.args has it
	find := "sms find acme --to 0771234567 "
	clock := time.Now().Add(-3 * time.Hour).UTC().Format("2006-01-02T15:04")
	f.runAll([]call{
		{args: "sms find acme --to 12", exit: app.ExitUsage, errs: []string{"--to is 07XXXXXXXX"}},
		{args: find + "--around noon", exit: app.ExitUsage, errs: []string{"--around is a time such as"}},
		{args: find + "--around 14:05 --from 14:00", exit: app.ExitUsage, errs: []string{"--around, or --from"}},
		{args: find + "--to-time 14:05", exit: app.ExitUsage, errs: []string{"needs --from"}},
		{args: find + "--from 2026-03-31T14:05 --to-time 2026-03-31T14:05", exit: app.ExitUsage,
			errs: []string{"ends before"}},
		{args: find + "--last 1h", out: []string{`TIME +REQUEST +STATE .*\n\S+ \S+ UTC +` + loggedID +
			` +accepted +twilio +SM0 +sms_send +production +managed +10,000 +` + twilio + `\n$`}},
		{args: find + "--env dev", out: []string{"No message to that number in the logs.*svc sms uncertain list acme"}},
		{args: "sms find other --to 0771234567", out: []string{"No message to that number"}},
		{args: find + "--around " + clock, out: []string{second + ` +accepted +quicksend`, third + ` +not_in_log +twilio`},
			absent: loggedID},
		{args: find + "--from " + clock + " --to-time " + time.Now().UTC().Format(time.RFC3339) + " --output csv",
			out: []string{loggedID, `^TIME,REQUEST,STATE,VENDOR,VENDOR ID,`}},

		{args: "sms status nonsense", exit: app.ExitNotFound,
			errs: []string{"no project has this reference", "svc sms find"}},
		{args: "sms status " + strings.Replace(loggedID, "9", "6", 1), exit: app.ExitNotFound,
			errs: []string{"no reference of request 6ed.*\n.*svc logs 6ed"}},
		{args: "sms status " + otherID, exit: app.ExitNotFound, errs: []string{"svc sms uncertain ask acme " + uncertain}},
		{args: "sms status " + loggedID, out: []string{`acme +production +twilio +not_found +20404 +- `}},
		{args: "sms status " + argument(twilio) + " --project other", exit: app.ExitNotFound},
		{args: "sms status " + argument(none) + " --project acme",
			out:  []string{`quicksend +unknown +- +vendor_has_no_status`},
			errs: []string{"quicksend reports no state. These vendors do: textlk, ultimatesms, dialogv2, twilio."}},

		{args: "sms uncertain ask acme 7", exit: app.ExitUsage, errs: []string{"uncertain list"}},
		{args: "sms uncertain ask other " + uncertain, exit: app.ExitNotFound, errs: []string{"no such uncertain charge"}},
		{args: "sms uncertain ask acme " + uncertain, out: []string{`Vendor +quicksend\n`, `Result +open`},
			errs: []string{"These vendors do: textlk"}},
		{args: "sms uncertain list acme", out: []string{uncertain}},
	})
}

// TestUncertain: an uncertain SMS stays charged and listed until it is confirmed or refunded, once
// (docs/decisions/money.md#uncertain-sms).
func TestUncertain(t *testing.T) {
	f := newFixture(t)
	f.runAll([]call{
		{args: "sms uncertain list", out: []string{"No SMS is uncertain"}},
		{args: "project create Acme --id acme"},
		{args: "project create Other --id other"},
		{args: "credit grant acme 30000 --reason x"},
		{args: "credit grant other 10000 --reason x"},
	})
	first, second, third := f.uncertainSMS("acme", "r1"), f.uncertainSMS("acme", "r2"), f.uncertainSMS("other", "r3")
	resolve := "sms uncertain resolve acme " + first
	f.runAll([]call{
		{args: "sms uncertain list", out: []string{`PROJECT +ID +TIME`,
			`acme +` + first + ` .*:\d\d UTC +10,000 +0.01 +production +quicksend +r1 +- +\S{80,}\n`, second,
			`other +` + third}},
		{args: "sms uncertain list acme", out: []string{first, second}, absent: third},
		{args: "sms uncertain list nobody", exit: app.ExitNotFound},
		{args: "credit ledger acme --uncertain", out: []string{"uncertain", "r2"}},

		{args: resolve, exit: app.ExitUsage, errs: []string{"--confirm or --refund"}},
		{args: resolve + " --refund", exit: app.ExitUsage, errs: []string{"--reason"}},
		{args: resolve + " --refund --confirm --reason x", exit: app.ExitUsage, errs: []string{"--confirm or --refund"}},
		{args: "sms uncertain resolve acme 7 --refund --reason x", exit: app.ExitUsage, errs: []string{"uncertain list"}},
		{args: "sms uncertain resolve acme " + third + " --refund --reason x", exit: app.ExitNotFound,
			errs: []string{"no such uncertain charge"}},
		{args: "credit refund acme " + first + " --reason x", exit: app.ExitRefused,
			errs: []string{"is uncertain", "uncertain resolve"}},

		{args: resolve + " --refund --reason vendor_has_no_record_of_it",
			out: []string{`Credits +10,000 credits \(0.01 USD\)\n`, `Resolution +refunded`, `By +local`,
				`Balance +20,000 credits`}},
		{args: resolve + " --refund --reason again",
			out: []string{"Reason +vendor has no record of it", "Balance +20,000 credits"}},
		{args: resolve + " --confirm --reason again", exit: app.ExitRefused,
			errs: []string{"resolved already: refunded by local", "final"}},
		{args: "sms uncertain resolve acme " + second + " --confirm --reason delivered",
			out: []string{`Resolution +confirmed`, `Balance +20,000 credits`}},
		{args: "sms uncertain list", out: []string{third}, absent: "acme"},
		{args: "sms uncertain list --all",
			out: []string{first + `.* r1 +refunded: vendor has no record of it, by local`,
				second + `.* r2 +confirmed: delivered, by local`, third}},
		{args: "credit ledger acme --days 2", out: []string{
			`captured +-10,000 .* r1 +refunded: vendor has no record of it, by local`,
			`captured +-10,000 .* r2 +confirmed: delivered, by local`,
			`refund +\+10,000 +\+0.01 +sms +production +quicksend +- +r1 +vendor has no record of it, for ` + first +
				`, by local`,
		}},
	})
	if open := decode[[]sms.Uncertain](f, "sms uncertain list"); len(open) != 1 || open[0].ProjectID != "other" ||
		string(open[0].Key) != third || open[0].Credits != 10_000 {
		t.Errorf("%+v", open)
	}
	f.run(call{args: "credit ledger acme --days 2 --output json",
		out: []string{`"refunds": "` + first + `"`, `"resolution": \{\n +"verdict": "refunded"`}})
}

// TestSMSTest: one message goes through the integration's account after a confirmation, svc prints the outcome, and no
// credits move.
func TestSMSTest(t *testing.T) {
	f := newFixture(t)
	vendors := f.sandbox
	f.must(vendors.SetRules(sandbox.Rule{To: "0770000009", Outcome: sandbox.Closed}))
	f.runAll([]call{
		{args: "project create Acme --id acme"},
		{args: "integration set acme sms quicksend --mode byok --setting sender~id=Acme --secrets -",
			stdin: `{"email":"` + sandbox.QuickSendEmail + `","api_key":"` + sandbox.QuickSendAPIKey + `"}`},
		{args: "integration set acme sms twilio --mode byok --inactive --setting sender~id=Acme --setting " +
			"endpoint=http://127.0.0.1:1 --secrets -",
			stdin: `{"account_sid":"` + sandbox.TwilioAccountSID + `","auth_token":"` + sandbox.TwilioAuthToken + `"}`},
		{args: "vendor account sms textlk --env prod --secrets -", stdin: `{"api_token":"` + sandbox.TextLKToken + `"}`},
		{args: "integration set acme sms textlk --env prod --mode managed --setting sender~id=Acme"},
		{args: "integration set acme sms aws --env prod --mode managed --inactive --setting sender~id=Acme"},
		{args: "integration set acme sms notifylk --mode byok --incomplete --inactive"},
	})
	const test = "sms test acme quicksend --to "
	shown := []string{
		`From +acme \(development\) through QuickSend.lk, sender Acme`, `Endpoint ` + vendors.URL +
			`/quicksend\n`, `To +\+94771234567`, `Message +"A test message of SVC API.", SMS units: 1`,
		`Paid by +the project's own account at QuickSend.lk; the project's credits are not charged`,
	}
	f.runAll([]call{
		{args: test + "0771234567", exit: app.ExitRefused,
			errs: append([]string{`Send it\?\nsvc: Not confirmed. Run again with --yes.`}, shown...)},
		{args: test + "0771234567", typed: []string{}, stdin: "n\n", exit: app.ExitRefused,
			errs: append([]string{`Send it\? \[y/N\]`, "Not confirmed. Run again with --yes."}, shown...)},
		{args: "sms test acme quicksend --yes", exit: app.ExitUsage, errs: []string{"--to is"}},
		{args: test + "0771234567 --yes --message " + strings.Repeat("a", 460), exit: app.ExitUsage,
			errs: []string{"1 to 3 SMS units, not 4"}},
		{args: test + "0771234567 --yes --env prod", exit: app.ExitNotFound, errs: []string{"production/sms/quicksend"}},
		{args: "sms test acme notifylk --to 0771234567 --yes", exit: app.ExitRefused, errs: []string{"lacks"}},
	})
	if calls := vendors.Calls(); len(calls) != 0 {
		t.Fatalf("sent without a yes: %v", calls)
	}
	f.runAll([]call{
		{args: test + "0771234567", typed: []string{}, stdin: "y\n",
			out: []string{`Outcome +accepted by QuickSend.lk`, `Status +\S`, `ID +\d`}, errs: shown},
		{args: test + "+94771234567 --yes --message ආයුබෝවන්", out: []string{"accepted"}},
		{args: test + "0770000001 --yes", exit: app.ExitRefused,
			errs: []string{"rejected: the vendor refused the message", "Nothing was sent"}},
		{args: test + "0770000002 --yes", exit: app.ExitRefused,
			errs: []string{"rejected: the vendor refused the account or its key", "integration set --ask"}},
		{args: test + "0770000003 --yes", exit: app.ExitFailed,
			errs: []string{"uncertain: the vendor's response is not valid", "may have been sent"}},
		{args: test + "0770000009 --yes", exit: app.ExitFailed,
			errs: []string{"uncertain: the request was sent, and no response came", "may have been sent"}},
		{args: "sms test acme twilio --to 0771234567 --yes", exit: app.ExitFailed,
			errs: []string{"not sent: the vendor could not be reached"}},
		{args: "sms test acme textlk --env prod --to 0771234567 --yes", out: []string{"accepted by Text.lk"},
			errs: []string{"Paid by +the service's own account at Text.lk"}},
		{args: "sms test acme textlk --env prod --to 0771234567 --yes --output json",
			out: []string{`"outcome": "accepted"`, `"mode": "managed"`, `"units": 1`}},
		{args: "sms test acme aws --env prod --to 0771234567 --yes", out: []string{"accepted by AWS"},
			errs: []string{"Signed +by local, your own AWS identity"}},
		{args: "credit ledger acme", out: []string{"No entries"}},
	})
	if calls := vendors.Calls(); len(calls) != 9 {
		t.Errorf("%d calls reached a vendor, want one for each message: 9", len(calls))
	}
	for _, s := range []string{sandbox.QuickSendAPIKey, sandbox.TextLKToken} {
		if strings.Contains(f.printed.String(), s) {
			t.Error("a vendor's secret was printed")
		}
	}
}
