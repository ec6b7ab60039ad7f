package main

import (
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"svcapi/cmd/svc/app"
	"svcapi/shared/dynamo"
	"svcapi/shared/wallet"
	"svcapi/test/must"
)

func walletKey(id string) dynamo.Item { return dynamo.Item{"pk": dynamo.Text(id)} }

// setBalance changes a balance without an entry in the ledger.
func (f *fixture) setBalance(projectID string, credits int64) {
	f.t.Helper()
	s := f.stack()
	_, err := s.DB.UpdateItem(f.t.Context(), &dynamodb.UpdateItemInput{
		TableName: new(s.Table("wallets")), Key: walletKey(projectID), UpdateExpression: new("SET balance = :b"),
		ExpressionAttributeValues: dynamo.Item{":b": dynamo.Number(credits)},
	})
	f.must(err)
}

// deleteWallet deletes the wallet of a project.
func (f *fixture) deleteWallet(projectID string) {
	f.t.Helper()
	s := f.stack()
	_, err := s.DB.DeleteItem(f.t.Context(),
		&dynamodb.DeleteItemInput{TableName: new(s.Table("wallets")), Key: walletKey(projectID)})
	f.must(err)
}

// TestMoves: adjustments and refunds count once, an alert is stored, limits and trials change.
func TestMoves(t *testing.T) {
	f := newFixture(t, "project create Acme --id acme", "credit grant acme 1000 --reason invoice")
	f.runAll([]call{
		misuse("credit adjust acme --by 0 --reason x"),
		refused("credit adjust acme --reason x --by -1001", "credit balance"),
		shows("credit adjust acme --reason booked_twice --by -100", "Balance +900 credits"),
		shows("credit ledger acme", "adjustment +-100 .* booked twice, by local"),
		misuse("credit refund acme nothing --reason x"),
		notFound("credit refund acme 1767225600000000-abcdef0 --reason x"),
		shows("credit alert acme 950", "below 950 credits"),
		shows("credit alert acme 0", "none"),
		misuse("credit alert acme few"),
		misuse("project limits acme --daily-units -1", `above 0 or "none", not "-1"`),
		shows("project limits acme --requests 1200 --window 10s", "1200 per 10s"),
		shows("project limits acme", "1200 per 10s", "Per recipient +none", "Daily credits +none", "Daily units +none",
			"Today +0 credits, 0 SMS units"),
		shows("project limits acme --requests 60 --per-recipient 20/24h,5/10m --daily-credits 5000000 --daily-units 2000",
			"60 per 10s", "Per recipient +5/10m, 20/24h", `Daily credits +5,000,000 credits a day`,
			"Daily units +2,000 SMS units a day"),
		shows("project limits acme --window 1m --daily-units none", "60 per 1m,", "Per recipient +5/10m, 20/24h", "5,000,000",
			"Daily units +none"),
		shows("project show acme", "60 per 1m", "Per recipient +5/10m, 20/24h", "5,000,000 credits a day",
			"Daily units +none"),
		shows("project limits acme --output json", `"per_recipient": \[\n +"5/10m",\n +"20/24h"`, `"daily_credits": 5000000`,
			`"credits_today": 0`),
		shows("project limits acme --per-recipient none --daily-credits none", "Per recipient +none", "Daily credits +none"),
		misuse("project limits acme --per-recipient 5", "in windows, such as 5/10m"),
		misuse("project limits acme --per-recipient five/1h", "such as 5/10m"),
		shows("project trial acme on --allow 0771234567", `yes, to: \+94771234567`),
		misuse("project trial acme maybe"),
		misuse("project trial acme off --allow 0771234567"),
		shows("project trial acme off", "Trial +no"),
	})
	id := decode[movedCredits](f, "credit adjust acme --by 7 --reason more").ID
	f.run(shows("credit adjust acme --by 7 --reason more --id "+string(id), "Balance +907 credits"))

	charge := f.charge("acme", wallet.Barcode, 3, 30, id.Time())
	f.runAll([]call{
		misuse("credit refund acme "+charge, "--reason"),
		shows("credit refund acme "+charge+" --reason broken", "Credits +30", "Balance +907 credits"),
		shows("credit refund acme "+charge+" --reason again", "Balance +907 credits"),
		shows("credit ledger acme", "refund +\\+30 .*broken, for "+charge).without("again"),
		shows("credit ledger acme --output json",
			`"state": "captured",\n +"credits": -30,\n +"operation": "barcode",\n +"units": 3,`,
			`"state": "refund",\n +"credits": 30,`),
		shows("credit ledger acme --output csv", `,captured,-30,-0.00003,barcode,`, `,refund,30,0.00003,barcode,`),
		shows("ledger verify", "Every wallet agrees with its ledger").notes("1 wallet, 6 ledger entries"),
	})
}

// TestLedgerVerify: the command prints the findings of wallet.Verify.
func TestLedgerVerify(t *testing.T) {
	f := newFixture(t, "project create Acme --id acme", "credit grant acme 1000 --reason invoice")
	f.run(shows("ledger verify", "Every wallet"))
	f.setBalance("acme", 1001)
	f.run(finds("ledger verify", `acme +unbalanced .*holds 1001 credits, the ledger says 1000: \+1`).
		notes("svc: 1 problem"))
}

// TestGrants: all grants of a file are made or none, and once.
func TestGrants(t *testing.T) {
	f := newFixture(t, "project create A --id aaa", "project create B --id bbb")
	const args = "credit grant --file - --batch 2026-03-31-invoices"
	tomorrow := time.Now().AddDate(0, 0, 1).Add(time.Minute)
	good := "project,credits,reason\n# comment\naaa, 500, invoice 1\nbbb,700\n"
	f.runAll([]call{
		misuse("credit grant --file /nowhere --batch 2026-03-31"),
		misuse("credit grant --file - --batch invoices", "begins with their date").given(good),
		misuse("credit grant --file - --batch 2026-13-31", "begins with their date").given(good),
		misuse("credit grant --file - --batch 2019-12-31", "--batch is of 2019-12-31; it can be of 2020-01-01 to today").
			given(good),
		misuse("credit grant --file - --batch "+tomorrow.UTC().Format(time.DateOnly), "--batch is of").given(good),
		misuse("credit grant aaa 5 --reason x --id "+string(wallet.NewKey(tomorrow, "x")), "--id is of"),
		misuse("credit grant aaa 5 --reason x --id 0000000000000001-abcdef0", "--id is of 1970-01-01"),
		misuse(args, "line 4 has no reason").given(good),
		misuse(args+" --reason x", "line 2: aaa is in the file twice", "line 3 is not", "line 4 is not").
			given("aaa,1\naaa,2\nbbb\nbbb,x\n"),
		misuse(args+" --reason x", "no such projects, or closed ones: ccc").given("aaa,1\nccc,2\n"),
		misuse(args+" --reason x", "no grants").given(""),
		shows(args+" --reason x --dry-run", "aaa +500 +invoice 1 .*would be granted", "bbb +700 +x").
			notes(`1,200 credits \(0.0012 USD\) in 2 grants, 0 failed`).given(good),
		shows(args+" --reason x --dry-run", "aaa +500 +invoice 1 .*would be granted").
			notes(`500 credits \(0.0005 USD\) in 1 grant, 0 failed`).
			given("\ufeffProject_ID,credits\r\naaa , 500 , invoice 1 \r\n"),
		shows(args+" --reason x", "aaa .* granted", "bbb .* granted").given(good),
		shows(args+" --reason x", "aaa .* granted").given(good),
		finds(args+" --reason x", "another movement").notes("some grants failed").given("aaa,501\n"),
		shows("credit balance aaa", "Balance +500 credits"),
		shows("credit balance bbb", "Balance +700 credits"),
		shows("ledger verify", "Every wallet"),
	})
}

// TestTransfer: an import equals the export, without secrets; an integration without its secret is inactive.
func TestTransfer(t *testing.T) {
	f := newFixture(t, "project create Acme --id acme --requests 7 --window 5s --trial --allow 0771234567")
	f.runAll([]call{
		shows("integration set acme sms quicksend --mode byok --setting sender~id=Acme --setting unit~price=0.64 --secrets " +
			"-").given(`{"email":"a@example.com","api_key":"topsecret"}`),
		{args: "integration set acme barcode builtin --mode managed --priority 3"},
		shows("project limits acme --per-recipient 5/10m,20/24h --daily-credits 5000 --daily-units 20", "5/10m"),
		{args: "burner add acme own.example"},
		{args: "burner allow fine.example --project acme"},
	})
	exported := f.run(shows("project export acme").without("topsecret"))
	file := f.write(exported)
	f.runAll([]call{
		refused("project import "+file, "exists"),
		shows("project import "+file+" --id copy --dry-run", "write copy / project"),
		shows("project import "+file+" --id copy", "Limit +7 per 5s", "Per recipient +5/10m, 20/24h", "5,000 credits",
			"20 SMS units", "Integrations +2").notes("development/sms/quicksend is imported inactive"),
		shows("integration list copy", `sms +quicksend +byok +inactive`, `barcode +builtin +managed +active +3`),
		misuse("project import -").given(`{"format":9}`),
		misuse("project import -").given(`{"secrets":1}`),
		misuse("project import -", "divide 24h").given(strings.Replace(exported, "5/10m", "5/7m", 1)),
		misuse("project import -", `unit_price cannot be "0,64"`).given(strings.Replace(exported, `"0.64"`, `"0,64"`, 1)),
		misuse("project import -", `"Fine.example" is not a domain`).
			given(strings.Replace(exported, "fine.example", "Fine.example", 1)),
		misuse("project import -", `no vendor "nobody"`).given(strings.Replace(exported, "quicksend", "nobody", 1)),
		{args: "project pause acme"},
		notFound("project create Globex --like nobody"),
		shows("project create Globex --id globex --like acme --requests 9", `Name +Globex`, `State +running`,
			`Limit +9 per 5s`, `Trial +yes, to: \+94771234567`, `Integrations +2`).
			notes("development/sms/quicksend is imported inactive: quicksend lacks secret fields"),
		shows("integration list globex", `sms +quicksend +byok +inactive .*sender_id=Acme unit_price=0.64`,
			`barcode +builtin +managed +active +3`),
		shows("project create Initech --id initech --like acme --trial=false --window 1m --daily-credits none "+
			"--daily-units 3", `Limit +7 per 1m`, `Trial +no`, `Per recipient +5/10m, 20/24h`, `Daily credits +none`,
			`Daily units +3 `),
		shows("burner list globex", `own.example +disposable\nfine.example +allowed`),
		shows("credit balance globex", "Balance +0 credits"),
		shows("credential list globex", "No credentials"),
	})
	// Only the ID and the integration without its secret differ.
	want := strings.Replace(strings.Replace(exported, `"acme"`, `"copy"`, 1), "\"byok\",\n      \"active\": true",
		"\"byok\",\n      \"active\": false", 1)
	if copied := f.run(call{args: "project export copy"}); copied != want {
		t.Errorf("%s\nwant\n%s", copied, want)
	}
}

// TestRefusals: a refused command changes neither tables nor secrets, also where only its last write would be refused.
// The fixture compares them around each refused command of all tests (docs/decisions/operating.md#refused-commands).
func TestRefusals(t *testing.T) {
	f := newFixture(t)
	const account = `{"email":"a@example.com","api_key":"k"}`
	const set = "integration set acme sms quicksend --mode byok --setting sender~id=A --secrets - "
	f.runAll([]call{
		{args: "project create Acme --id acme"},
		{args: "integration set acme sms textlk --env prod --mode managed --incomplete"},
		{args: "integration set acme barcode builtin --mode managed"},
		shows("vendor account sms quicksend --secrets -").given(account),
		{args: "credit grant acme 5 --reason x"},
	})
	transfer := func(integrations string) string {
		return `{"format":1,"project_id":"copy","name":"Copy","limit_requests":1,"limit_seconds":1,"integrations":[` +
			integrations + `]}`
	}
	const barcode = `{"environment":"development","kind":"barcode","vendor":"builtin","mode":"managed","active":true}`
	f.deleteWallet("acme")
	f.runAll([]call{
		refused(set+"--env both", "share one mode").given(account),
		misuse(set+"--priority 1001", "--priority is a whole").given(account),
		notFound("credit ledger verify", "svc ledger verify"),
		refused("credit grant acme 100.000001usd --reason x", `Grant 100,000,001 credits .* to acme\?`, "--yes"),
		misuse(set+"--setting sender~id="+strings.Repeat("a", 1025), "at most 1024 bytes").given(account),
		notFound("integration enable acme barcode builtin --env both", "production/barcode/builtin"),
		misuse("project import -", `mode "free"`).given(transfer(strings.Replace(barcode, "managed", "free", 1))),
		misuse("project import -").given(transfer(barcode + "," + strings.Replace(barcode, "barcode", "fax", 1))),
		misuse("project create B --like acme --id A", "3 to 32"),
		misuse("project create B --like acme --per-recipient 5/7m", "divide 24h"),
		misuse("project limits acme --requests 5 --daily-units 9999999999999999"),
		refused("credit adjust acme --by 5 --reason x", "no such wallet"),
		refused("credit alert acme 5", "no such wallet"),
		refused("vendor account sms quicksend --env both --untried --secrets -", "needs email").given(`{"api_key":"new"}`),
	})
	call{args: strings.Replace(set, "--secrets - ", "--local", 1), typed: []string{"a", "k"},
		exit: app.ExitRefused, beside: func() {
			f.run(call{args: "integration set acme sms textlk --env dev --mode managed --incomplete"}) // of another operator
		}}.run(t)
	f.run(call{args: "integration set acme sms smslenz --mode byok --setting sender~id=A --incomplete --inactive"})
	call{args: "integration set acme sms smslenz --local", typed: []string{"1", "k"}, exit: app.ExitRefused,
		errs: []string{"is managed now"}, beside: func() {
			f.run(call{args: "integration set acme sms smslenz --mode managed --incomplete"})
		}}.run(t)
	for _, vendor := range []string{"quicksend", "smslenz"} {
		fields, err := f.stack().Secrets.Fields(t.Context(), "sms", "acme", "development", vendor)
		if err != nil || len(fields) > 0 {
			t.Errorf("the refused command stored %v, %v", fields, err)
		}
	}
}

// TestDryRun: each command prints its first write with --dry-run. The fixture compares tables and secrets.
func TestDryRun(t *testing.T) {
	f := newFixture(t, "project create Acme --id acme", "integration set acme barcode builtin --mode managed",
		"credit grant acme 100 --reason x")
	issued := decode[issuedSecret](f, "credential issue acme")
	clientID := strings.ReplaceAll(issued.ClientID, "_", "~")
	for _, c := range []call{
		shows("project create New --id new", "write new / project in svc-"+f.stage+"-projects"),
		shows("project pause acme", "write acme / project"),
		shows("project limits acme --daily-units 5", "write acme / project"),
		shows("credential issue acme --env both", "write acme / credential#.*\\n.*write acme / credential#"),
		shows("credential rotate "+clientID, "write acme / credential#"),
		shows("credential revoke "+clientID, "ask: Revoke"),
		shows("integration set acme sms quicksend --mode byok --setting sender~id=A --secrets -", "make the secret svc/"+
			f.stage+"/sms/acme/accounts").given(`{"email":"a@example.com","api_key":"k"}`),
		shows("integration disable acme barcode builtin", "write acme / integration#"),
		shows("vendor account sms quicksend --secrets -", "make the secret svc/"+f.stage+"/sms/managed/accounts").
			given(`{"email":"a@example.com","api_key":"k"}`),
		shows("credit grant acme 5 --reason x", "write acme .* in svc-"+f.stage+"-movements", "change acme in svc-"+
			f.stage+"-wallets"),
		shows("credit adjust acme --by -100 --reason x", "change acme in svc-"+f.stage+"-wallets"),
		shows("credit alert acme 5", "change acme in svc-"+f.stage+"-wallets"),
		shows("burner add acme example.com", "acme"),
	} {
		c.args += " --dry-run"
		c.errs = append(c.errs, "Dry run: nothing was changed")
		f.run(c)
	}
	f.runAll([]call{
		shows("project list --dry-run", "acme"),
		refused("credit adjust acme --by -101 --reason y --dry-run",
			"-101 credits, and the wallet has 100 that no lease holds"),
	})
}

// TestPrices: the price list of the local stack, in credits and dollars, and the own prices of a project, whose changes
// are entries without credits (docs/decisions/money.md#own-prices).
func TestPrices(t *testing.T) {
	f := newFixture(t)
	f.run(fails("price list", "no prices"))
	f.announce(map[string]any{"prices": map[string]int64{"sms": 12_345, "barcode": 100}})
	const own = `sms +8,000 +0.008 +own +12,345`
	f.runAll([]call{
		shows("price list", `sms +12,345 +0.012345 +PriceSms`, `barcode +100 +0.0001 +PriceBarcode`).without("pdf"),
		{args: "project create Acme --id acme"}, {args: "project create Other --id other"},
		misuse("price set acme fax 1", `no price "fax"; the prices are sms, `),
		misuse("price set acme sms 0.5"),
		misuse("price set acme sms 1000000000001"),
		notFound("price set nobody sms 1"),
		shows("price set acme sms 8000 --dry-run", "write acme / project"),
		shows("price set acme sms 8000", own), shows("price set acme sms 8000", own),
		shows("price list acme", own, `barcode +100 +0.0001 +PriceBarcode +100`),
		shows("price list other").without("own"),
		shows("credit ledger acme", `price +0 +0.00 +sms .*from 12,345 \(listed\) to 8,000, by local`),
		{args: "project create Copy --id copy --like acme"}, shows("price list copy", own),
		shows("project export copy", `"prices": {\s+"sms": 8000\s+}`),
		shows("price unset acme sms", `sms +12,345 +0.012345 +PriceSms`),
		shows("usage statement acme", `Price of sms from 12,345 \(listed\) to 8,000, .*Z, by local +0 +0.00`,
			`Price of sms from 8,000 to 12,345 \(listed\), .*Z, by local`),
		shows("usage statement copy").without("Price"),
		shows("ledger verify", "Every wallet agrees").notes("3 wallets, 2 ledger entries"),
	})
}

// TestVersion: svc names its version without a stack.
func TestVersion(t *testing.T) {
	t.Chdir(t.TempDir())
	out, _ := call{args: "version --output json"}.run(t)
	got := decodeText[struct{ Version, Commit, Go, System string }](t, out)
	if got.Version == "" || got.Go != runtime.Version() || got.System == "" {
		t.Errorf("%+v: %s", got, out)
	}
}

// TestHelp: each command has a text in its group's help, and each text of commands.yaml belongs to a command.
func TestHelp(t *testing.T) {
	var texts map[string]struct{ Short string }
	must.Succeed(t, yaml.Unmarshal(help, &texts))
	var check func(group string, all []*cobra.Command)
	check = func(group string, all []*cobra.Command) {
		for _, c := range all {
			name := strings.TrimSpace(group + " " + c.Name())
			if texts[name].Short == "" && !c.Hidden {
				t.Errorf("%q has no text", name)
			}
			delete(texts, name)
			check(name, c.Commands())
		}
	}
	check("", append(commands(&app.App{}), &cobra.Command{Use: "svc"}))
	if len(texts) > 0 {
		t.Errorf("texts without a command: %v", texts)
	}
}

// TestCompletion: shells get a script and the values of flags.
func TestCompletion(t *testing.T) {
	shows("completion bash", "complete").run(t)
	shows("~~complete credential issue acme --env=", "production").run(t)
	newFixture(t, "project create Acme --id acme")
	for line, want := range map[string]string{
		"integration set": "acme", "usage --project": "acme", "project create X --like": "acme",
		"integration set acme": "barcode", "vendor account": "sms",
		"integration enable acme location": "ipinfo", "sms test acme": "quicksend", "integration set acme sms quicksend " +
			"--setting": "sender~id=",
	} {
		shows("~~complete --local "+line+" =", `(?m)^`+strings.ReplaceAll(want, "~", "_")).run(t)
	}
}

// TestArgumentsFirst: svc refuses arguments before it looks for a stack, and names the one form of a word
// (docs/decisions/operating.md#refused-commands).
func TestArgumentsFirst(t *testing.T) {
	t.Chdir(t.TempDir())
	for args, want := range map[string]string{
		"integration set acme qrcode":                             `QR codes belong to the kind barcode`,
		"integration set acme sms":                                `missing VENDOR; the vendors of kind sms are .*quicksend`,
		"integration set acme sms quicksend --setting a=b":        `no setting "a"; it has .*sender_id`,
		"integration set acme sms quicksend --secrets /nowhere":   `no such file`,
		"integration set acme sms quicksend --replace --inactive": `not both`,
		"integration enable acme sms nobody":                      `no vendor "nobody"`,
		"integration check acme fax":                              `unknown kind "fax"`,
		"sms test acme nobody --to 0771234567":                    `no vendor "nobody"`,
		"vendor account barcode builtin":                          `needs no account`,
		"credential rotate sms":                                   `"svc vendor account" rotates the key of a vendor`,
		"rates history --limit 0":                                 `at least 1`,
		"rates show 12 USD":                                       `a code is such as USD or LKR-SELL, not "12"`,
		"integration disable acme qrcode builtin":                 `QR codes belong to the kind barcode`,
		"integration set acme sms quicksend --priority -4":        `--priority is a whole number from 0 to 1000, not -4`,
		"integration set acme sms quicksend --setting endpoint=x": `endpoint is not a plain URL: "x"`,
		"project limits acme --requests 0":                        `limit of 0 requests`,
		"project limits acme --window 0s":                         `window of 0s`,
		"project limits acme --per-recipient 5/7m":                `divide 24h`,
		"secrets rotate":                                          `"svc vendor account" sets and rotates`,
		"credit grant acme 5eur --reason x":                       `CREDITS is a whole number`,
		"credit grants march.csv":                                 `did you mean "svc credit grant"`,
		"project delete acme":                                     `did you mean "svc project close"`,
	} {
		misuse(args+" --local", want).run(t)
	}
	notFound("project show A --local").run(t)
}

// TestCheckAndRotate: svc tests an account at its vendor; a key that does not work replaces no working key.
func TestCheckAndRotate(t *testing.T) {
	f := newFixture(t, "project create Acme --id acme")
	good := accountAt("quicksend")
	const set = "integration set acme sms quicksend --mode byok --setting sender~id=Acme --setting endpoint="
	const rotate = "vendor account sms quicksend --project acme --secrets -"
	f.runAll([]call{
		notFound("integration check acme", "no such integrations of project acme"),
		notFound(rotate).given(good),
		shows(set + f.sandbox.URL + "/quicksend --secrets -").given(good),
		{args: "integration set acme barcode builtin --mode managed"},
		shows("integration check acme", `ok +integration +development/sms/quicksend +balance at the vendor`,
			`ok +integration +development/barcode/builtin +complete`),
		notFound("integration check acme sms quicksend --env prod", "no such integrations"),
		shows(rotate, "Tried +not tried").given(good), // nothing is new
		refused(rotate, "does not work, and the old key stays").given(`{"api_key":"topsecret-wrong"}`),
		refused(rotate + " --dry-run").given(`{"api_key":"topsecret-wrong"}`),
		shows(rotate+" --untried", "Tried +not tried").given(`{"api_key":"topsecret-wrong"}`),
		finds("integration check acme sms", `broken +integration +development/sms/quicksend`).notes("1 problem"),
		shows(rotate, "Tried +balance at the vendor").given(good),
		shows("integration check acme sms", `ok +integration +development/sms/quicksend`),
		// The service's own account has no endpoint: the sandbox is asked all the same.
		shows("vendor account sms quicksend --secrets -").given(`{"email":"a@example.com","api_key":"topsecret"}`),
		shows("vendor account sms quicksend --secrets -", "Tried +balance at the vendor").given(good),
	})
}

// FuzzGrants checks that each file of grants is refused with a reason, or names no project twice.
func FuzzGrants(f *testing.F) {
	for _, text := range []string{"project,credits,reason\nacme,100,x\n", "\ufeffacme,100\n", "acme,1e3\n", "acme,-1\n",
		"a,1\na,2\n", "\"a\n", "acme;100", "", "a,9223372036854775808\n", "#x\na,1,,\n"} {
		f.Add(text, "2026-03-31-invoices", "why")
		f.Add(text, "2026-02-30", "")
	}
	f.Fuzz(func(t *testing.T, text, batch, reason string) {
		grants, err := readGrants(text, batch, reason)
		if err != nil {
			if _, ok := errors.AsType[*app.FailureError](err); !ok || grants != nil {
				t.Errorf("%v beside %v", grants, err)
			}
			return
		}
		seen := map[string]bool{}
		for _, g := range grants {
			if g.Credits < 1 || g.Reason == "" || seen[g.ProjectID] || g.ID == "" {
				t.Errorf("%+v", g)
			}
			seen[g.ProjectID] = true
		}
	})
}
