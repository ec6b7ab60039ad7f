package main

import (
	"encoding/json"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"svcapi/cmd/svc/app"
	"svcapi/cmd/svc/credential"
	creditcmd "svcapi/cmd/svc/credit"

	"svcapi/local/sandbox"
	"svcapi/shared/dynamo"
	"svcapi/shared/wallet"
)

func walletKey(id string) dynamo.Item { return dynamo.Item{"pk": dynamo.Text(id)} }

// TestMoves: adjustments and refunds count once, an alert is stored, limits and trials change.
func TestMoves(t *testing.T) {
	f := newFixture(t)
	f.runAll([]call{
		{args: "project create Acme --id acme"},
		{args: "credit grant acme 1000 --reason invoice"},
		{args: "credit adjust acme --by 0 --reason x", exit: app.ExitUsage},
		{args: "credit adjust acme --reason x --by -1001", exit: app.ExitRefused, errs: []string{"credit balance"}},
		{args: "credit adjust acme --reason booked_twice --by -100", out: []string{"Balance +900 credits"}},
		{args: "credit ledger acme", out: []string{"adjustment +-100 .* booked twice, by local"}},
		{args: "credit refund acme nothing --reason x", exit: app.ExitUsage},
		{args: "credit refund acme 1767225600000000-abcdef0 --reason x", exit: app.ExitNotFound},
		{args: "credit alert acme 950", out: []string{"below 950 credits"}},
		{args: "credit alert acme 0", out: []string{"none"}},
		{args: "credit alert acme few", exit: app.ExitUsage},
		{args: "project limits acme --daily-units -1", exit: app.ExitUsage, errs: []string{`above 0 or "none", not "-1"`}},
		{args: "project limits acme --requests 1200 --window 10s", out: []string{"1200 per 10s"}},
		{args: "project limits acme", out: []string{"1200 per 10s", "Per recipient +none", "Daily credits +none",
			"Daily units +none", "Today +0 credits, 0 SMS units"}},
		{args: "project limits acme --requests 60 --per-recipient 20/24h,5/10m --daily-credits 5000000 --daily-units 2000",
			out: []string{"60 per 10s", "Per recipient +5/10m, 20/24h", `Daily credits +5,000,000 credits a day`,
				"Daily units +2,000 SMS units a day"}},
		{args: "project limits acme --window 1m --daily-units none",
			out: []string{"60 per 1m,", "Per recipient +5/10m, 20/24h", "5,000,000", "Daily units +none"}},
		{args: "project show acme", out: []string{"60 per 1m", "Per recipient +5/10m, 20/24h",
			"5,000,000 credits a day", "Daily units +none"}},
		{args: "project limits acme --output json",
			out: []string{`"per_recipient": \[\n +"5/10m",\n +"20/24h"`, `"daily_credits": 5000000`, `"credits_today": 0`}},
		{args: "project limits acme --per-recipient none --daily-credits none",
			out: []string{"Per recipient +none", "Daily credits +none"}},
		{args: "project limits acme --requests 0", exit: app.ExitUsage},
		{args: "project limits acme --per-recipient 5", exit: app.ExitUsage, errs: []string{"in windows, such as 5/10m"}},
		{args: "project limits acme --per-recipient five/1h", exit: app.ExitUsage, errs: []string{"such as 5/10m"}},
		{args: "project trial acme on --allow 0771234567", out: []string{`yes, to: \+94771234567`}},
		{args: "project trial acme maybe", exit: app.ExitUsage},
		{args: "project trial acme off --allow 0771234567", exit: app.ExitUsage},
		{args: "project trial acme off", out: []string{"Trial +no"}},
	})
	id := decode[creditcmd.Moved](f, "credit adjust acme --by 7 --reason more").ID
	f.run(call{args: "credit adjust acme --by 7 --reason more --id " + string(id), out: []string{"Balance +907 credits"}})

	charge := f.charge("acme", wallet.Barcode, 3, 30, id.Time())
	f.runAll([]call{
		{args: "credit refund acme " + charge, exit: app.ExitUsage, errs: []string{"--reason"}},
		{args: "credit refund acme " + charge + " --reason broken", out: []string{"Credits +30", "Balance +907 credits"}},
		{args: "credit refund acme " + charge + " --reason again", out: []string{"Balance +907 credits"}},
		{args: "credit ledger acme", out: []string{"refund +\\+30 .*broken, for " + charge}, absent: "again"},
		{args: "credit ledger acme --output json",
			out: []string{`"state": "captured",\n +"credits": -30,\n +"operation": "barcode",\n +"units": 3,`,
				`"state": "refund",\n +"credits": 30,`}},
		{args: "credit ledger acme --output csv",
			out: []string{`,captured,-30,-0.00003,barcode,`, `,refund,30,0.00003,barcode,`}},
		{args: "ledger verify", out: []string{"Every wallet agrees with its ledger"},
			errs: []string{"1 wallet, 6 ledger entries"}},
	})
}

// TestLeftLease: "project close" refuses an open lease with a next step that is possible, and "credit ledger" does not
// show how the settling function released the lease.
func TestLeftLease(t *testing.T) {
	f := newFixture(t)
	f.runAll([]call{{args: "project create Acme --id acme"}, {args: "credit grant acme 1000 --reason invoice"},
		{args: "project pause acme"}})
	s := f.stack()
	r := &wallet.Reservation{Project: "acme", Began: time.Now(), Credits: 30,
		Price: wallet.Barcode, RequestID: "r"}
	f.must(s.Credits.Reserve(t.Context(), r))
	f.run(call{args: "project close acme --forfeit --yes", exit: app.ExitRefused,
		errs: []string{"Run the command again in three minutes"}})
	var failed error
	left := []wallet.Lease{{Project: "acme", Key: r.Key, Slots: 1, Credits: 30}}
	s.Credits.Settle(t.Context(), left, func(_ wallet.Lease, _ wallet.Settled, err error) { failed = err })
	f.must(failed)
	f.runAll([]call{
		{args: "ledger verify", errs: []string{"1 wallet, 2 ledger entries"}},
		{args: "credit ledger acme", out: []string{"grant"}, absent: "released"},
	})
}

// TestLedgerVerify: the command prints the findings of wallet.Verify.
func TestLedgerVerify(t *testing.T) {
	f := newFixture(t)
	f.runAll([]call{{args: "project create Acme --id acme"}, {args: "credit grant acme 1000 --reason invoice"},
		{args: "ledger verify", out: []string{"Every wallet"}}})
	s := f.stack()
	update := "SET balance = :b"
	_, err := s.DB.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
		TableName: new(s.Table("wallets")), Key: walletKey("acme"), UpdateExpression: &update,
		ExpressionAttributeValues: dynamo.Item{":b": dynamo.Number(1001)},
	})
	f.must(err)
	f.run(call{args: "ledger verify", exit: app.ExitFailed, reports: true,
		out: []string{`acme +unbalanced .*holds 1001 credits, the ledger says 1000: \+1`}, errs: []string{"svc: 1 problem"}})
}

// TestGrants: all grants of a file are made or none, and once.
func TestGrants(t *testing.T) {
	f := newFixture(t)
	f.runAll([]call{{args: "project create A --id aaa"}, {args: "project create B --id bbb"}})
	const args = "credit grant --file - --batch 2026-03-31-invoices"
	tomorrow := time.Now().AddDate(0, 0, 1).Add(time.Minute)
	good := "project,credits,reason\n# comment\naaa, 500, invoice 1\nbbb,700\n"
	f.runAll([]call{
		{args: "credit grant --file /nowhere --batch 2026-03-31", exit: app.ExitUsage},
		{args: "credit grant --file - --batch invoices", stdin: good, exit: app.ExitUsage,
			errs: []string{"begins with their date"}},
		{args: "credit grant --file - --batch 2026-13-31", stdin: good, exit: app.ExitUsage,
			errs: []string{"begins with their date"}},
		{args: "credit grant --file - --batch 2019-12-31", stdin: good, exit: app.ExitUsage,
			errs: []string{"--batch is of 2019-12-31; it can be of 2020-01-01 to today"}},
		{args: "credit grant --file - --batch " + tomorrow.UTC().Format(time.DateOnly), stdin: good, exit: app.ExitUsage,
			errs: []string{"--batch is of"}},
		{args: "credit grant aaa 5 --reason x --id " + string(wallet.NewKey(tomorrow, "x")), exit: app.ExitUsage,
			errs: []string{"--id is of"}},
		{args: "credit grant aaa 5 --reason x --id 0000000000000001-abcdef0", exit: app.ExitUsage,
			errs: []string{"--id is of 1970-01-01"}},
		{args: args, stdin: good, exit: app.ExitUsage, errs: []string{"line 4 has no reason"}},
		{args: args + " --reason x", stdin: "aaa,1\naaa,2\nbbb\nbbb,x\n", exit: app.ExitUsage,
			errs: []string{"line 2: aaa is in the file twice", "line 3 is not", "line 4 is not"}},
		{args: args + " --reason x", stdin: "aaa,1\nccc,2\n", exit: app.ExitUsage,
			errs: []string{"no such projects, or closed ones: ccc"}},
		{args: args + " --reason x", stdin: "", exit: app.ExitUsage, errs: []string{"no grants"}},
		{args: args + " --reason x --dry-run", stdin: good,
			out: []string{"aaa +500 +invoice 1 .*would be granted",
				"bbb +700 +x"}, errs: []string{`1,200 credits \(0.0012 USD\) in 2 grants, 0 failed`}},
		{args: args + " --reason x --dry-run", stdin: "\ufeffProject_ID,credits\r\naaa , 500 , invoice 1 \r\n",
			out: []string{"aaa +500 +invoice 1 .*would be granted"}, errs: []string{`500 credits \(0.0005 USD\) in 1 grant, 0 ` +
				`failed`}},
		{args: args + " --reason x", stdin: good, out: []string{"aaa .* granted", "bbb .* granted"}},
		{args: args + " --reason x", stdin: good, out: []string{"aaa .* granted"}},
		{args: args + " --reason x", stdin: "aaa,501\n", exit: app.ExitFailed, reports: true,
			out: []string{"another movement"}, errs: []string{"some grants failed"}},
		{args: "credit balance aaa", out: []string{"Balance +500 credits"}},
		{args: "credit balance bbb", out: []string{"Balance +700 credits"}},
		{args: "ledger verify", out: []string{"Every wallet"}},
	})
}

// TestTransfer: an import equals the export, without secrets; an integration without its secret is inactive.
func TestTransfer(t *testing.T) {
	f := newFixture(t)
	f.runAll([]call{
		{args: "project create Acme --id acme --requests 7 --window 5s --trial --allow 0771234567"},
		{args: "integration set acme sms quicksend --mode byok --setting sender~id=Acme --setting unit~price=0.64 --secrets -", stdin: `{"email":"a@example.com","api_key":"topsecret"}`},
		{args: "integration set acme barcode builtin --mode managed --priority 3"},
		{args: "project limits acme --per-recipient 5/10m,20/24h --daily-credits 5000 --daily-units 20",
			out: []string{"5/10m"}},
		{args: "burner add acme own.example"},
		{args: "burner allow fine.example --project acme"},
	})
	exported := f.run(call{args: "project export acme", absent: "topsecret"})
	file := f.write(exported)
	f.runAll([]call{
		{args: "project import " + file, exit: app.ExitRefused, errs: []string{"exists"}},
		{args: "project import " + file + " --id copy --dry-run", out: []string{"write copy / project"}},
		{args: "project import " + file + " --id copy",
			out: []string{"Limit +7 per 5s", "Per recipient +5/10m, 20/24h", "5,000 credits", "20 SMS units",
				"Integrations +2"}, errs: []string{"development/sms/quicksend is imported inactive"}},
		{args: "integration list copy",
			out: []string{`sms +quicksend +byok +inactive`, `barcode +builtin +managed +active +3`}},
		{args: "project import -", stdin: `{"format":9}`, exit: app.ExitUsage},
		{args: "project import -", stdin: `{"secrets":1}`, exit: app.ExitUsage},
		{args: "project import -", stdin: strings.Replace(exported, "5/10m", "5/7m", 1), exit: app.ExitUsage,
			errs: []string{"divide 24h"}},
		{args: "project import -", stdin: strings.Replace(exported, `"0.64"`, `"0,64"`, 1), exit: app.ExitUsage,
			errs: []string{`unit_price cannot be "0,64"`}},
		{args: "project import -", stdin: strings.Replace(exported, "fine.example", "Fine.example", 1), exit: app.ExitUsage,
			errs: []string{`"Fine.example" is not a domain`}},
		{args: "project import -", stdin: strings.Replace(exported, "quicksend", "nobody", 1), exit: app.ExitUsage,
			errs: []string{`no vendor "nobody"`}},
	})
	f.runAll([]call{
		{args: "project pause acme"},
		{args: "project create Globex --like nobody", exit: app.ExitNotFound},
		{args: "project create Globex --id globex --like acme --requests 9",
			out: []string{`Name +Globex`, `State +running`, `Limit +9 per 5s`, `Trial +yes, to: \+94771234567`,
				`Integrations +2`}, errs: []string{"development/sms/quicksend is imported inactive: quicksend lacks secret fields"}},
		{args: "integration list globex",
			out: []string{`sms +quicksend +byok +inactive .*sender_id=Acme unit_price=0.64`,
				`barcode +builtin +managed +active +3`}},
		{args: "project create Initech --id initech --like acme --trial=false --window 1m --daily-credits none " +
			"--daily-units 3",
			out: []string{`Limit +7 per 1m`, `Trial +no`, `Per recipient +5/10m, 20/24h`,
				`Daily credits +none`, `Daily units +3 `}},
		{args: "burner list globex", out: []string{`own.example +disposable\nfine.example +allowed`}},
		{args: "credit balance globex", out: []string{"Balance +0 credits"}},
		{args: "credential list globex", out: []string{"No credentials"}},
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
		{args: "vendor account sms quicksend --secrets -", stdin: account},
	})
	f.run(call{args: "credit grant acme 5 --reason x"})
	transfer := func(integrations string) string {
		return `{"format":1,"project_id":"copy","name":"Copy","limit_requests":1,"limit_seconds":1,"integrations":[` +
			integrations + `]}`
	}
	const barcode = `{"environment":"development","kind":"barcode","vendor":"builtin","mode":"managed","active":true}`
	s := f.stack()
	_, err := s.DB.DeleteItem(t.Context(),
		&dynamodb.DeleteItemInput{TableName: new(s.Table("wallets")), Key: walletKey("acme")})
	f.must(err)
	f.runAll([]call{
		{args: set + "--env both", stdin: account, exit: app.ExitRefused, errs: []string{"share one mode"}},
		{args: set + "--priority 1001", stdin: account, exit: app.ExitUsage, errs: []string{"--priority is a whole"}},
		{args: "credit ledger verify", exit: app.ExitNotFound, errs: []string{"svc ledger verify"}},
		{args: "credit grant acme 100.000001usd --reason x", exit: app.ExitRefused,
			errs: []string{`Grant 100,000,001 credits .* to acme\?`, "--yes"}},
		{args: set + "--setting sender~id=" + strings.Repeat("a", 1025), stdin: account, exit: app.ExitUsage,
			errs: []string{"at most 1024 bytes"}},
		{args: "integration enable acme barcode builtin --env both", exit: app.ExitNotFound,
			errs: []string{"production/barcode/builtin"}},
		{args: "project import -", stdin: transfer(strings.Replace(barcode, "managed", "free", 1)), exit: app.ExitUsage,
			errs: []string{`mode "free"`}},
		{args: "project import -", stdin: transfer(barcode + "," + strings.Replace(barcode, "barcode", "fax", 1)),
			exit: app.ExitUsage},
		{args: "project create B --like acme --id A", exit: app.ExitUsage, errs: []string{"3 to 32"}},
		{args: "project create B --like acme --per-recipient 5/7m", exit: app.ExitUsage, errs: []string{"divide 24h"}},
		{args: "project limits acme --requests 5 --daily-units 9999999999999999", exit: app.ExitUsage},
		{args: "credit adjust acme --by 5 --reason x", exit: app.ExitRefused, errs: []string{"no such wallet"}},
		{args: "credit alert acme 5", exit: app.ExitRefused, errs: []string{"no such wallet"}},
		{args: "vendor account sms quicksend --env both --untried --secrets -", stdin: `{"api_key":"new"}`,
			exit: app.ExitRefused, errs: []string{"needs email"}},
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
		if fields, err := s.Secrets.Fields(t.Context(), "sms", "acme", "development", vendor); err != nil || len(fields) > 0 {
			t.Errorf("the refused command stored %v, %v", fields, err)
		}
	}
}

// TestDryRun: each command prints its first write with --dry-run. The fixture compares tables and secrets.
func TestDryRun(t *testing.T) {
	f := newFixture(t)
	f.runAll([]call{
		{args: "project create Acme --id acme"},
		{args: "integration set acme barcode builtin --mode managed"},
		{args: "credit grant acme 100 --reason x"},
	})
	issued := decode[credential.Issued](f, "credential issue acme")
	clientID := strings.ReplaceAll(issued.ClientID, "_", "~")
	for _, c := range []call{
		{args: "project create New --id new", out: []string{"write new / project in svc-" + f.stage + "-projects"}},
		{args: "project pause acme", out: []string{"write acme / project"}},
		{args: "project limits acme --daily-units 5", out: []string{"write acme / project"}},
		{args: "credential issue acme --env both", out: []string{"write acme / credential#.*\\n.*write acme / credential#"}},
		{args: "credential rotate " + clientID, out: []string{"write acme / credential#"}},
		{args: "credential revoke " + clientID, out: []string{"ask: Revoke"}},
		{args: "integration set acme sms quicksend --mode byok --setting sender~id=A --secrets -",
			stdin: `{"email":"a@example.com","api_key":"k"}`, out: []string{"make the secret svc/" + f.stage +
				"/sms/acme/accounts"}},
		{args: "integration disable acme barcode builtin", out: []string{"write acme / integration#"}},
		{args: "vendor account sms quicksend --secrets -", stdin: `{"email":"a@example.com","api_key":"k"}`,
			out: []string{"make the secret svc/" + f.stage + "/sms/managed/accounts"}},
		{args: "credit grant acme 5 --reason x",
			out: []string{"write acme .* in svc-" + f.stage + "-movements", "change acme in svc-" + f.stage + "-wallets"}},
		{args: "credit adjust acme --by -100 --reason x", out: []string{"change acme in svc-" + f.stage + "-wallets"}},
		{args: "credit alert acme 5", out: []string{"change acme in svc-" + f.stage + "-wallets"}},
		{args: "burner add acme example.com", out: []string{"acme"}},
	} {
		c.args += " --dry-run"
		c.errs = append(c.errs, "Dry run: nothing was changed")
		f.run(c)
	}
	f.runAll([]call{
		{args: "project list --dry-run", out: []string{"acme"}},
		{args: "credit adjust acme --by -101 --reason y --dry-run", exit: app.ExitRefused,
			errs: []string{"-101 credits, and the wallet has 100 that no lease holds"}},
	})
}

// TestPrices: the price list of the local stack, in credits and dollars, and the own prices of a project, whose changes
// are entries without credits (docs/decisions/money.md#own-prices).
func TestPrices(t *testing.T) {
	f := newFixture(t)
	f.run(call{args: "price list", exit: app.ExitFailed, errs: []string{"no prices"}})
	f.announce(map[string]any{"prices": map[string]int64{"sms": 12_345, "barcode": 100}})
	const own = `sms +8,000 +0.008 +own +12,345`
	f.runAll([]call{
		{args: "price list",
			out: []string{`sms +12,345 +0.012345 +PriceSms`, `barcode +100 +0.0001 +PriceBarcode`}, absent: "pdf"},
		{args: "project create Acme --id acme"}, {args: "project create Other --id other"},
		{args: "price set acme fax 1", exit: app.ExitUsage, errs: []string{`no price "fax"; the prices are sms, `}},
		{args: "price set acme sms 0.5", exit: app.ExitUsage},
		{args: "price set acme sms 1000000000001", exit: app.ExitUsage},
		{args: "price set nobody sms 1", exit: app.ExitNotFound},
		{args: "price set acme sms 8000 --dry-run", out: []string{"write acme / project"}},
		{args: "price set acme sms 8000", out: []string{own}}, {args: "price set acme sms 8000", out: []string{own}},
		{args: "price list acme", out: []string{own, `barcode +100 +0.0001 +PriceBarcode +100`}},
		{args: "price list other", absent: "own"},
		{args: "credit ledger acme", out: []string{`price +0 +0.00 +sms .*from 12,345 \(listed\) to 8,000, by local`}},
		{args: "project create Copy --id copy --like acme"}, {args: "price list copy", out: []string{own}},
		{args: "project export copy", out: []string{`"prices": {\s+"sms": 8000\s+}`}},
		{args: "price unset acme sms", out: []string{`sms +12,345 +0.012345 +PriceSms`}},
		{args: "usage statement acme", out: []string{`Price of sms from 12,345 \(listed\) to 8,000, .*Z, by local +0 +0.00`,
			`Price of sms from 8,000 to 12,345 \(listed\), .*Z, by local`}},
		{args: "usage statement copy", absent: "Price"},
		{args: "ledger verify", out: []string{"Every wallet agrees"}, errs: []string{"3 wallets, 2 ledger entries"}},
	})
}

// TestVersion: svc names its version without a stack.
func TestVersion(t *testing.T) {
	t.Chdir(t.TempDir())
	out, _ := call{args: "version --output json"}.run(t)
	var got struct{ Version, Commit, Go, System string }
	if err := json.Unmarshal([]byte(out), &got); err != nil || got.Version == "" || got.Go != runtime.Version() ||
		got.System == "" {
		t.Errorf("%+v, %v: %s", got, err, out)
	}
}

// TestCompletion: shells get a script and the values of flags.
func TestCompletion(t *testing.T) {
	call{args: "completion bash", out: []string{"complete"}}.run(t)
	call{args: "~~complete credential issue acme --env=", out: []string{"production"}}.run(t)
	f := newFixture(t)
	f.run(call{args: "project create Acme --id acme"})
	for line, want := range map[string]string{
		"integration set": "acme", "usage --project": "acme", "project create X --like": "acme",
		"integration set acme": "barcode", "vendor account": "sms",
		"integration enable acme location": "ipinfo", "sms test acme": "quicksend", "integration set acme sms quicksend " +
			"--setting": "sender~id=",
	} {
		call{args: "~~complete --local " + line + " =", out: []string{`(?m)^` + strings.ReplaceAll(want, "~", "_")}}.run(t)
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
		call{args: args + " --local", exit: app.ExitUsage, errs: []string{want}}.run(t)
	}
	call{args: "project show A --local", exit: app.ExitNotFound}.run(t)
}

// TestCheckAndRotate: svc tests an account at its vendor; a key that does not work replaces no working key.
func TestCheckAndRotate(t *testing.T) {
	f := newFixture(t)
	server := f.sandbox
	good := `{"email":"` + sandbox.QuickSendEmail + `","api_key":"` + sandbox.QuickSendAPIKey + `"}`
	const set = "integration set acme sms quicksend --mode byok --setting sender~id=Acme --setting endpoint="
	const rotate = "vendor account sms quicksend --project acme --secrets -"
	f.runAll([]call{
		{args: "project create Acme --id acme"},
		{args: "integration check acme", exit: app.ExitNotFound, errs: []string{"no such integrations of project acme"}},
		{args: rotate, stdin: good, exit: app.ExitNotFound},
		{args: set + server.URL + "/quicksend --secrets -", stdin: good},
		{args: "integration set acme barcode builtin --mode managed"},
		{args: "integration check acme",
			out: []string{`ok +integration +development/sms/quicksend +balance at the vendor`,
				`ok +integration +development/barcode/builtin +complete`}},
		{args: "integration check acme sms quicksend --env prod", exit: app.ExitNotFound,
			errs: []string{"no such integrations"}},
		{args: rotate, stdin: good, out: []string{"Tried +not tried"}}, // nothing is new
		{args: rotate, stdin: `{"api_key":"topsecret-wrong"}`, exit: app.ExitRefused,
			errs: []string{"does not work, and the old key stays"}},
		{args: rotate + " --dry-run", stdin: `{"api_key":"topsecret-wrong"}`, exit: app.ExitRefused},
		{args: rotate + " --untried", stdin: `{"api_key":"topsecret-wrong"}`, out: []string{"Tried +not tried"}},
		{args: "integration check acme sms", exit: app.ExitFailed, reports: true,
			out: []string{`broken +integration +development/sms/quicksend`}, errs: []string{"1 problem"}},
		{args: rotate, stdin: good, out: []string{"Tried +balance at the vendor"}},
		{args: "integration check acme sms", out: []string{`ok +integration +development/sms/quicksend`}},
		// The service's own account has no endpoint: the sandbox is asked all the same.
		{args: "vendor account sms quicksend --secrets -", stdin: `{"email":"a@example.com","api_key":"topsecret"}`},
		{args: "vendor account sms quicksend --secrets -", stdin: good, out: []string{"Tried +balance at the vendor"}},
	})
	if strings.Contains(f.printed.String(), "topsecret") {
		t.Error("a vendor's secret was printed")
	}
}
