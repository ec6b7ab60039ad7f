package main

import (
	"strings"
	"testing"
	"time"

	"svcapi/cmd/svc/app"
	"svcapi/cmd/svc/sms"
	"svcapi/local/sandbox"
	"svcapi/shared/wallet"
)

// uncertainSMS charges a project for an SMS with an unknown outcome, as the function does.
func (f *fixture) uncertainSMS(projectID, requestID string) string {
	f.t.Helper()
	credits := f.stack().Credits
	r := &wallet.Reservation{
		Project: projectID, Key: wallet.NewKey(time.Now(), requestID), Credits: 10_000, Price: wallet.SMS,
		Environment: "production", RequestID: requestID, Irrevocable: true,
	}
	f.must(credits.Reserve(f.t.Context(), r))
	f.must(credits.Mark(f.t.Context(), r))
	f.must(credits.Capture(f.t.Context(), r, wallet.Outcome{Uncertain: true, Vendor: "quicksend"}))
	credits.Remove(f.t.Context(), r)
	return string(r.Key)
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
			`acme +` + first + ` .*:\d\d UTC +10,000 +0.01 +production +quicksend +r1 +-\n`, second, `other +` + third}},
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
			`refund +\+10,000 +\+0.01 +sms +production +quicksend +r1 +vendor has no record of it, for ` + first + `, by local`,
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
