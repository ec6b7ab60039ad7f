package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"

	"svcapi/cmd/svc/app"
	"svcapi/local/build"
	"svcapi/shared/books"
	"svcapi/shared/dynamo"
	"svcapi/shared/wallet"
	"svcapi/test/enginetest"
	"svcapi/test/must"
)

// usageReport is the JSON of "svc usage" with rows of a kind.
type usageReport[R any] struct {
	Rows   []R       `json:"rows"`
	Totals usageSums `json:"totals"`
}

// charge charges a request of a project that began at a time, and returns the ID of the charge.
func (f *fixture) charge(project, operation string, units, credits int64, at time.Time) string {
	f.t.Helper()
	s := f.stack()
	r := &wallet.Reservation{
		Project: project, Began: at, Credits: credits, Price: operation, Units: units,
		Environment: "production", RequestID: project + operation,
	}
	f.must(s.Credits.Reserve(f.t.Context(), r))
	f.must(s.Credits.Capture(f.t.Context(), r, wallet.Outcome{}))
	if project != "globex" { // whose lease stays open
		s.Credits.Remove(f.t.Context(), r)
	}
	return string(r.Key)
}

// TestUsage checks usage and statements (docs/decisions/money.md#usage).
func TestUsage(t *testing.T) {
	f := newFixture(t, "project create Acme --id acme", "project create Globex --id globex",
		"project create Idle --id idle", "credit grant acme 100000 --reason x", "credit grant globex 1000 --reason x")
	now := time.Now().UTC()
	yesterday := now.AddDate(0, 0, -1)
	final := now.Add(-30*time.Minute).Day() == now.Day()
	says := map[bool]string{true: "yes", false: "no"}[final]
	first := f.charge("acme", wallet.SMS, 6, 60_000, yesterday)
	f.charge("globex", wallet.Barcode, 1, 100, yesterday)
	f.runAll([]call{
		{args: "credit refund acme " + first + " --reason x"},
		{args: "credit adjust acme --by -7 --reason x"},
		shows("usage statement acme --from yesterday --output csv", `^LINE,CREDITS,USD\nOpening `+
			`balance,0,0.00\nGrants,100000,0.10\nAdjustments,-7,-0.000007\n"Charges, `+
			`sms",60000,0.06\nRefunds,60000,0.06\nClosing balance,99993,0.099993\n$`),
		shows("usage --day yesterday", `acme +\S+ +sms +1 +6 +60,000 +0 +0.06 +`+says+
			`\nglobex +\S+ +barcode +1 +1 +100 +0 +0.0001 +no\ntotal +- +- +2 +7 +60,100 +0 +0.0601 +-\n$`).
			notes(`entries read, \d+ read units \(0.00\d* USD`),
		shows("usage --day yesterday --output csv",
			`^PROJECT,DAY,OPERATION,REQUESTS,UNITS,CREDITS,REFUNDS,USD,FINAL\nacme,\S+,sms,1,6,60000,0,0.06,`+says+
				`\nglobex,\S+,barcode,1,1,100,0,0.0001,no\n$`),
		shows("usage --project idle --output json", `"rows": \[\],`),
		shows("usage --from yesterday --by project", `PROJECT +NAME +PERIOD `+
			`.*\nacme +Acme +\S+\.\.\S+ +1 +6 +60,000 +60,000 +0.00 +not `+
			`counted\nglobex +Globex +\S+ +1 +1 +100 +0 +0.0001 +not counted\ntotal +- +- +2 +7 +60,100 +60,000 +0.0001 +-\n$`),
		shows("usage --day yesterday --by project --output csv",
			`^PROJECT,NAME,PERIOD,REQUESTS,UNITS,CREDITS,REFUNDS,USD,BYOK\nacme,Acme,\d{4}-\d\d-\d\d,1,6,60000,0,0.06,not `+
				`counted\nglobex,.*\n$`),
		misuse("usage --by operation", `--by is one of day, project, not "operation"`),
		misuse("usage statement", "PROJECT, or of --all"),
		misuse("usage statement acme --all --output-dir x", "PROJECT, or of --all"),
		misuse("usage statement --all", "PROJECT, or of --all"),
	})
	dir := filepath.Join(t.TempDir(), "statements")
	f.run(shows("usage statement --all --from yesterday --output-dir "+dir, `acme +99,993 +\S+/acme-\S+\.csv\n`,
		`idle +0 `))
	period := yesterday.Format(time.DateOnly) + ".." + now.Format(time.DateOnly)
	text, err := os.ReadFile(filepath.Join(dir, "acme-"+period+".csv"))
	wantText := "PROJECT,NAME,PERIOD,LINE,CREDITS,USD\nacme,Acme,P,Opening balance,0,0.00\n" +
		"acme,Acme,P,Grants,100000,0.10\nacme,Acme,P,Adjustments,-7,-0.000007\nacme,Acme,P,\"Charges, sms\",60000,0.06\n" +
		"acme,Acme,P,Refunds,60000,0.06\nacme,Acme,P,Closing balance,99993,0.099993\n"
	if err != nil || string(text) != strings.ReplaceAll(wantText, ",P,", ","+period+",") {
		t.Errorf("%s, %v", text, err)
	}
	f.runAll([]call{
		{args: "project list --sort balance --output csv", // yesterday's charges are not of today
			out: []string{`(?m)^idle,Idle,running,0,0,.*\nglobex,Globex,running,900,0,.*\nacme,Acme,running,99993,0,`}},
		{args: "credit grant idle 50 --reason x"},
	})
	f.charge("idle", wallet.PDF, 1, 7, time.Now())
	f.run(shows("project list --sort spent", `(?m)^idle +Idle +running +43 +7 .*\nacme .* 0 .*\nglobex`))
	f.run(shows("usage --project acme --from yesterday --output json",
		fmt.Sprintf(`^\{\n  "rows": \[\n    \{"project_id":"acme","day":%q,"operation":"sms","requests":1,"units":6,`+
			`"credits":60000,"refunds":0,"usd":"0.06","final":%t\},\n    \{`, yesterday.Format(time.DateOnly), final),
		fmt.Sprintf(`,\n    \{"project_id":"acme","day":%q,"operation":"sms","requests":0,"units":0,"credits":0,`+
			`"refunds":60000,"usd":"-0.06","final":false\}\n  \],\n  "totals": \{"requests":1,"units":6,"credits":60000,`+
			`"refunds":60000,"usd":"0.00"\}\n\}\n$`, now.Format(time.DateOnly))))
	f.setBalance("acme", 99_994)
	f.run(fails("usage statement acme",
		`the entries of acme add up to 99,993 credits, the wallet holds 99,994\n +"svc ledger verify"`))
	f.must(os.RemoveAll(dir))
	f.run(finds("usage statement --all --output-dir "+dir, `globex .*\nidle .*\n$`).
		notes(`acme has no statement: .*99,993`))
	if files, _ := filepath.Glob(filepath.Join(dir, "*.csv")); len(files) != 2 {
		t.Errorf("files %v", files)
	}
	s, broken := f.stack(), wallet.NewKey(yesterday, "broken")
	for _, key := range []wallet.Key{broken, wallet.NewKey(now, "broken")} {
		entry := enginetest.LedgerKey("acme", key)
		entry["st"] = dynamo.Text("captured")
		_, err = s.DB.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: new(s.Table("ledger")), Item: entry})
		f.must(err)
	}
	f.run(finds("project list", `\nidle .*`).notes(`acme: .*: the sum lacks this entry`))
	f.run(finds("usage --day yesterday",
		`\nacme +\S+ +sms +1 +6 +60,000 +0 +0.06 .*\nglobex .*\ntotal +- +- +2 +7 +60,100 +0 +0.0601 .*\n$`).
		notes(`acme: wallet: ledger entry ` + string(broken) + `: .*: the sums lack this entry\n(.*\n)*svc: 1 problem\n$`).
		typing())
}

// compiled compiles svc into a folder of PATH, and returns a function that runs one command line and returns its output
// and its memory.
func compiled(t *testing.T) func(args ...string) (out string, kilobytes int64) {
	t.Helper()
	binary, err := build.Program(t.Context(), "./cmd/svc")
	must.Succeed(t, err)
	t.Setenv("PATH", filepath.Dir(binary)+string(os.PathListSeparator)+os.Getenv("PATH"))
	return func(args ...string) (text string, kilobytes int64) {
		t.Helper()
		var out, errs bytes.Buffer
		cmd := exec.CommandContext(t.Context(), binary, args...)
		cmd.Stdout, cmd.Stderr = &out, &errs
		began := time.Now()
		must.Succeed(t, cmd.Start())
		peak := make(chan int64)
		go func() { peak <- peakMemory(cmd.Process.Pid) }()
		if err := cmd.Wait(); err != nil {
			t.Errorf("svc %s: %v\n%s", strings.Join(args, " "), err, errs.String())
		}
		kilobytes = <-peak
		t.Logf("svc %s: %v, of these %v of the processor, %d KB, %s", strings.Join(args, " "),
			time.Since(began).Round(time.Millisecond), cmd.ProcessState.UserTime(), kilobytes, errs.String())
		return out.String(), kilobytes
	}
}

// peakMemory returns the most memory of a process until its end, in KB. The usage that the system reports at the end
// would have that of the process that started it.
func peakMemory(pid int) (kilobytes int64) {
	for {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		_, text, found := strings.Cut(string(status), "VmHWM:")
		if err != nil || !found { // a process that has ended has no memory
			return kilobytes
		}
		_, _ = fmt.Sscan(text, &kilobytes)
		time.Sleep(5 * time.Millisecond)
	}
}

// TestUsageOfManyEntries checks the memory of "svc usage" over a month of USAGE_ENTRIES charges, and that its sums are
// those of the statements and of "svc ledger verify", which compare them with the wallets.
func TestUsageOfManyEntries(t *testing.T) {
	const price, projects = 10_000, 4
	n, err := strconv.Atoi(os.Getenv("USAGE_ENTRIES")) // a million at night
	if err != nil {
		n = 2_000
	}
	svc, f := compiled(t), newFixture(t)
	s, units := f.stack(), int64(0)
	var group errgroup.Group
	group.SetLimit(8)
	for p := range projects {
		id := fmt.Sprint("project-", p)
		f.run(call{args: "project create X --id " + id})
		before := wallet.NewKey(time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC), id)
		f.run(call{args: fmt.Sprintf("credit grant %s %d --reason x --yes --id %s", id, n*price, before)})
		f.setBalance(id, int64((n-n/projects)*price)) // what the charges below leave
		for from := 0; from < n/projects; from += 25 {
			var writes []types.WriteRequest
			for i := from; i < min(from+25, n/projects); i++ {
				at := time.Date(2026, 3, 1+i%31, 0, 0, 0, i*1000, time.UTC)
				key := wallet.NewKey(at, fmt.Sprint(i))
				units += int64(i%3 + 1)
				item := dynamo.Item{
					"st": dynamo.Text("captured"), "cr": dynamo.Number(price), "un": dynamo.Number(int64(i%3 + 1)),
					"op":  dynamo.Text([]string{"sms", "barcode", "pdf"}[i%3]),
					"rid": dynamo.Text(loggedID), "env": dynamo.Text("production"), "ven": dynamo.Text("quicksend"),
					"ts": dynamo.Text(at.Format(time.RFC3339Nano)),
				}
				maps.Copy(item, enginetest.LedgerKey(id, key))
				writes = append(writes, types.WriteRequest{PutRequest: &types.PutRequest{Item: item}})
			}
			group.Go(func() error { // DynamoDB Local leaves no item unprocessed: the sums below would differ
				_, err := s.DB.BatchWriteItem(t.Context(), &dynamodb.BatchWriteItemInput{
					RequestItems: map[string][]types.WriteRequest{s.Table("ledger"): writes},
				})
				return err
			})
		}
	}
	f.must(group.Wait())
	out, kilobytes := svc("usage", "--month", "2026-03", "--output", "json", "--local")
	got := decodeText[usageReport[usageRow]](t, out)
	if got.Totals != (usageSums{Requests: int64(n), Units: units, Credits: int64(n * price),
		USD: app.Dollars(int64(n * price))}) {
		t.Errorf("%+v of %d charges and %d units", got.Totals, n, units)
	}
	out, _ = svc("usage", "--month", "2026-03", "--by", "project", "--output", "json", "--local")
	whole := decodeText[usageReport[usageCustomer]](t, out)
	if len(whole.Rows) != projects || whole.Totals != got.Totals || whole.Rows[0].Period != "2026-03" {
		t.Errorf("by project: %+v, want the totals %+v", whole, got.Totals)
	}
	charged := int64(0)
	for p := range projects { // each compares its sum with the wallet, as verify does
		out, _ := svc("usage", "statement", fmt.Sprint("project-", p), "--month", "2026-03", "--output", "json", "--local")
		for _, c := range decodeText[books.Statement](t, out).Charges {
			charged += c.Credits
		}
	}
	if charged != got.Totals.Credits {
		t.Errorf("the statements charge %d credits, svc usage says %d", charged, got.Totals.Credits)
	}
	if n <= 10_000 { // for each page of a scan DynamoDB Local sorts the table: 12 minutes for 200,000 entries
		f.run(shows("ledger verify", "Every wallet agrees").
			notes(fmt.Sprintf("%s ledger entries", wallet.Grouped(int64(n+projects)))))
	}
	if runtime.GOOS == "linux" && (kilobytes == 0 || kilobytes > 60_000) {
		t.Errorf("svc usage used %d KB, want up to 60,000", kilobytes)
	}
}
