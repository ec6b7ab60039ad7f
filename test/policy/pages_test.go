package policy

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"svcapi/shared/wallet"
	"svcapi/test/must"
)

// update makes TestCosts and TestDecisions write the computed sections of their pages: make pages.
var update = flag.Bool("update", false, "write the computed sections of docs and README.md")

// hoursOfMonth is the length of a month in AWS's own examples.
const hoursOfMonth = 730

// unit is a measured value or a quota.
type unit struct {
	Value             float64
	Unit, Ask, Source string
}

// price is what AWS charges for a unit, in each region.
type price struct {
	Value        []float64
	Unit, Source string
}

// operationUnits are the measured units of one request, and its share of the mix in percent.
type operationUnits struct {
	Name          string
	Share         float64
	Writes, Reads float64
	Milliseconds  float64
	Vendor        float64 `json:"vendor_milliseconds"`
	Memory        float64 `json:"memory_mb"`
	X86           bool
	ResponseBytes float64 `json:"response_bytes"`
}

// model is docs/units.json, and what the template has.
type model struct {
	About      string
	Operations []operationUnits
	Units      map[string]unit
	Regions    []string
	Prices     map[string]price
	Quotas     map[string]unit

	alarms, alarmMetrics int
	metrics, idleMetrics int
	failing              int                // metrics that exist only while versions of functions fail
	runs                 map[string]float64 // of the schedules in a month, by function
	used                 map[string]bool    // the names of units, quotas and prices that a page needs
}

// readModel returns the model.
func readModel(t *testing.T) *model {
	t.Helper()
	s, m := current(), &model{runs: map[string]float64{}, used: map[string]bool{}}
	decoder := json.NewDecoder(strings.NewReader(read("docs", "units.json")))
	decoder.DisallowUnknownFields()
	must.Succeed(t, decoder.Decode(m))
	for _, alarm := range s.resources("AWS::CloudWatch::Alarm") {
		m.alarms++
		for _, metric := range watched(alarm) {
			m.alarmMetrics++
			if strings.Contains(metric, " version=") {
				m.failing++ // one version of the function
			}
		}
	}
	for _, schedule := range s.resources("AWS::Scheduler::Schedule") {
		folder, _, _ := strings.Cut(strings.ToLower(schedule.id), "function")
		m.runs[folder] = hoursOfMonth / every(schedule.properties.text("ScheduleExpression")).Hours()
	}
	for _, metric := range ownMetrics() {
		if metric.idle {
			m.idleMetrics++
		}
		for _, by := range metric.by {
			switch by {
			case "":
				m.metrics++
			case "outcome":
				m.metrics += len(outcomes())
			case "operation": // of Credits only those that have a price; docs, and none for a request without a route
				for _, paid := range operations() {
					if paid || !slices.Contains(metric.by, "") {
						m.metrics++
					}
				}
				if !slices.Contains(metric.by, "") {
					m.metrics += 2
				}
			}
		}
	}
	return m
}

func (m *model) unit(name string) float64 {
	m.used[name] = true
	return m.Units[name].Value
}

func (m *model) quota(name string) float64 {
	m.used[name] = true
	return m.Quotas[name].Value
}

// price returns the price of one unit in a region.
func (m *model) price(name string, region int) float64 {
	m.used[name] = true
	p := m.Prices[name]
	if len(p.Value) != len(m.Regions) {
		return math.NaN()
	}
	if strings.HasPrefix(p.Unit, "million ") {
		return p.Value[region] / 1e6
	}
	return p.Value[region]
}

// gigabyte is the size of a GB on AWS's bills.
const gigabyte = 1 << 30

// seconds is the time of an operation that its function is billed for.
func (m *model) seconds(o operationUnits) float64 {
	return (o.Milliseconds + o.Vendor + m.unit("event_milliseconds")) / 1000
}

// computing is the price of some seconds of a function.
func (m *model) computing(o operationUnits, seconds float64, region int) float64 {
	memory, architecture := o.Memory, "arm_second"
	if memory == 0 {
		memory = m.unit("memory_mb")
	}
	if o.X86 {
		architecture = "x86_second"
	}
	return seconds * memory / 1024 * m.price(architecture, region)
}

// request is the price of one request, without the vendor's bill.
func (m *model) request(o operationUnits, region int) float64 {
	return m.price("gateway", region) + m.price("invocation", region) + m.computing(o, m.seconds(o), region) +
		o.Writes*m.price("write", region) + o.Reads*m.price("read", region) +
		m.unit("log_bytes")/gigabyte*m.price("log", region) + o.ResponseBytes/gigabyte*m.price("data_out", region)
}

// perSecond sums a quantity over the mix, for that many requests a second.
func (m *model) perSecond(rate float64, of func(operationUnits) float64) (sum float64) {
	for _, o := range m.Operations {
		sum += rate * o.Share / 100 * of(o)
	}
	return sum
}

// The writes of one request by table: a paid request reserves and removes in its wallet, each request counts, and the
// rest is the ledger's (docs/decisions/requests.md#phases).
func paid(o operationUnits) bool             { return o.Writes >= 4 }
func walletWrites(o operationUnits) float64  { return map[bool]float64{true: 2}[paid(o)] }
func ledgerWrites(o operationUnits) float64  { return map[bool]float64{true: o.Writes - 3}[paid(o)] }
func ledgerEntries(o operationUnits) float64 { return map[bool]float64{true: 1}[paid(o)] }

// table writes a Markdown table.
func table(head []string, rows [][]string) string {
	var out strings.Builder
	line := func(cells []string) { fmt.Fprintf(&out, "| %s |\n", strings.Join(cells, " | ")) }
	line(head)
	line(slices.Repeat([]string{"---"}, len(head)))
	for _, row := range rows {
		line(row)
	}
	return out.String()
}

// across returns the cells of a row: the first ones, and one for each column.
func across[C any](columns []C, of func(C) string, first ...string) []string {
	for _, column := range columns {
		first = append(first, of(column))
	}
	return first
}

// number writes a number with three digits that count, and thousands apart.
func number(x float64) string {
	if x >= 100 {
		return wallet.Grouped(int64(math.RoundToEven(x)))
	}
	text := strconv.FormatFloat(x, 'f', max(0, min(4, 2-int(math.Floor(math.Log10(max(x, 1e-9)))))), 64)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}

// dollars writes a sum with cents, and without them from a thousand on.
func dollars(x float64) string {
	if x >= 1000 {
		return number(x)
	}
	return strconv.FormatFloat(x, 'f', 2, 64)
}

// computed compares the computed sections of a page, between their marks, with the page, or writes them.
func computed(t *testing.T, name string, sections map[string]string) {
	t.Helper()
	before := read(name)
	page := before
	for part, text := range sections {
		marks := regexp.MustCompile(`(?s)(<!-- ` + part + `: computed, make pages -->\n).*?(<!-- end -->)`)
		found := marks.FindAllStringSubmatch(page, -1)
		if len(found) != 1 {
			t.Errorf("%s has not one section %s", name, part)
			continue
		}
		page = strings.Replace(page, found[0][0], found[0][1]+"\n"+text+"\n"+found[0][2], 1)
	}
	if strings.Count(page, "computed, make pages") != len(sections) {
		t.Errorf("%s has other computed sections than %d", name, len(sections))
	}
	if page != before && !*update {
		t.Errorf("%s is older than what its sections are computed from: make pages", name)
	} else if page != before {
		must.Succeed(t, os.WriteFile(root(name), []byte(page), 0o644))
	}
}

// TestCosts computes the tables of docs/costs.md and docs/scale.md from the measured units, the prices, and the
// template's alarms, metrics and schedules.
func TestCosts(t *testing.T) {
	m := readModel(t)
	if m.metrics >= 60 {
		t.Errorf("%d custom metrics by default, want fewer than 60", m.metrics)
	}
	share := 0.0
	for _, o := range m.Operations {
		share += o.Share
		row := "paid: "
		switch {
		case !paid(o):
			row = "free: "
		case strings.HasPrefix(o.Name, "SMS"):
			row = "paid SMS: "
		}
		found := regexp.MustCompile(`\{"` + row +
			`(?s:.{1,120}?), 200, \d, (\d), (\d), "`).FindStringSubmatch(read("test", "acceptance", "oneprocess_test.go"))
		if found == nil || float64(found[1][0]-'0'+found[2][0]-'0') != o.Writes {
			t.Errorf("%s: %v writes; TestPhasesAndWrites counts %q", o.Name, o.Writes, found)
		}
	}
	if math.Abs(share-100) > 1e-9 {
		t.Errorf("the shares of the mix sum up to %v, want 100", share)
	}
	var perMillion [][]string
	for _, o := range m.Operations {
		row := []string{o.Name, number(o.Share) + " %", number(o.Writes), number(o.Reads), number(o.Milliseconds) + " ms"}
		alone := o
		alone.Vendor = 0
		for region := range m.Regions {
			row = append(row, dollars(m.request(alone, region)*1e6))
		}
		busy, each := "", ""
		if paid(o) { // one lease for many requests in place of two writes of the wallet
			alone.Writes += m.unit("lease_writes") - walletWrites(o)
			busy = dollars(m.request(alone, 0) * 1e6)
		}
		if o.Vendor > 0 {
			each = "+ " + dollars(m.computing(o, 1, 0)*1e6)
		}
		perMillion = append(perMillion, append(row, busy, each))
	}
	fixed, idle, prod := m.fixed()
	if idle > 15 {
		t.Errorf("a month without a request and a web ACL costs %.2f $; most of it is metrics, see "+
			"docs/decisions/operating.md#log-lines", idle)
	}
	computed(t, "docs/costs.md", map[string]string{
		"operations": table(slices.Concat([]string{"Operation", "Mix", "Writes", "Reads", "Own time"}, m.Regions,
			[]string{"Busy, " + m.Regions[0], "Each second of vendor"}), perMillion),
		"fixed": fixed, "project": m.project(), "storage": m.storage(), "flood": m.flood(),
	})
	computed(t, "docs/scale.md", map[string]string{"rates": m.rates()})
	computed(t, "README.md", map[string]string{
		"price": fmt.Sprintf("A month without a request costs %s $ in %s, and %s $ with the web ACL and the traces that "+
			"samconfig.toml\n"+
			"sets for prod. A million requests of \"%s\" cost %s $; the web ACL adds %s $ and tracing up to %s $. Your\n"+
			"vendor's bill and response time come on top: [what it costs](docs/costs.md).\n", dollars(idle), m.Regions[0],
			dollars(prod), m.Operations[0].Name, perMillion[0][5], dollars(m.price("acl_request", 0)*1e6),
			dollars(m.price("trace", 0)*1e6)),
	})
	known := slices.Concat(slices.Collect(maps.Keys(m.Units)), slices.Collect(maps.Keys(m.Quotas)),
		slices.Collect(maps.Keys(m.Prices)))
	slices.Sort(known)
	if used := slices.Sorted(maps.Keys(m.used)); !slices.Equal(used, known) {
		t.Errorf("docs/units.json has %v, and the pages use %v", known, used)
	}
}

// configured returns the value of a parameter in a stage of samconfig.toml.
func configured(s *templateFile, stage, name string) string {
	if own := regexp.MustCompile(`"Stage=` + stage + `",.*"` + name +
		`=(\w+)"`).FindStringSubmatch(read("samconfig.toml")); own != nil {
		return own[1]
	}
	return s.doc.text("Parameters", name, "Default")
}

// fixed returns the table of a month without a request and of a month in which everything occurs, and the price of the
// first: with the template's defaults, and in samconfig.toml's prod.
func (m *model) fixed() (text string, idle, prod float64) {
	s, settle, ratesync, listsync, resolve := current(), m.runs["settle"], m.runs["ratesync"], m.runs["securitylistsync"],
		m.runs["smsresolve"]
	rules := len(s.doc.list("Resources", "Firewall", "Properties", "Rules"))
	at := func(region int, stage string) (rows [][]string, idle, used float64) {
		add := func(what string, count float64, price float64, inIdle, inUse float64) {
			idle, used = idle+inIdle, used+inUse
			rows = append(rows, []string{what, number(count), number(price), dollars(inIdle), dollars(inUse)})
		}
		each := func(what string, count int, name string) {
			sum := float64(count) * m.price(name, region)
			add(what, float64(count), m.price(name, region), sum, sum)
		}
		each(fmt.Sprintf("%d alarms, by their metrics", m.alarms), m.alarmMetrics, "alarm_metric")
		metric := m.price("metric", region)
		add("Custom metrics", float64(m.metrics), metric, float64(m.idleMetrics)*metric, float64(m.metrics)*metric)
		add("Custom metrics of versions that fail, while they fail", float64(m.failing), metric, 0, float64(m.failing)*metric)
		each("Dashboard", 1, "dashboard")
		each("Secrets of the service's own vendor accounts", 4, "secret")
		one := operationUnits{}
		run := func(what string, runs, milliseconds float64) {
			price := m.price("schedule", region) + m.price("invocation", region) + m.computing(one, milliseconds/1000, region) +
				m.unit("log_bytes")/gigabyte*m.price("log", region)
			add(what, runs, price, runs*price, runs*price)
		}
		run("Runs of the settling function", settle, m.unit("settle_milliseconds"))
		run("Runs of ratesync", ratesync, m.unit("ratesync_milliseconds"))
		run("Runs of listsync", listsync, m.unit("listsync_milliseconds"))
		run("Runs of smsresolve", resolve, m.unit("smsresolve_milliseconds"))
		if configured(s, stage, "AddressRequestsPer5Minutes") != "0" {
			each("Web ACL of prod", 1, "acl")
			each("Its rules", rules, "acl_rule")
		}
		if configured(s, stage, "Tracing") == "Active" {
			each("Traces of these runs in prod", int(settle+ratesync+listsync+resolve), "trace")
		}
		return rows, idle, used
	}
	total := func(what string, idle, used float64) []string {
		return []string{"**" + what + "**", "", "", "**" + dollars(idle) + "**", "**" + dollars(used) + "**"}
	}
	rows, idle, used := at(0, "dev")
	inProd, prod, most := at(0, "prod")
	rows = slices.Concat(rows, [][]string{total("Total, dev and staging", idle, used)}, inProd[len(rows):],
		[][]string{total("Total of prod, as samconfig.toml sets it", prod, most)})
	text = table([]string{"A month, " + m.Regions[0], "Number", "$ each", "Nobody sends a request", "Everything occurs"},
		rows)
	for region := 1; region < len(m.Regions); region++ {
		_, unused, used := at(region, "dev")
		_, least, most := at(region, "prod")
		text += fmt.Sprintf("\nIn %s: %s and %s $; prod %s and %s $.", m.Regions[region], dollars(unused), dollars(used),
			dollars(least), dollars(most))
	}
	full := len(operations()) * 3 * 3 // each operation, with one outcome, and that with one vendor
	return text + fmt.Sprintf(`

At most %d of the custom metrics exist without a request. With `+"`MetricDetail=full`"+` each operation, outcome and vendor that
occurs is three more metrics: from %d (%s $) with one vendor each to about 400 (%s $), and the gateway's counts by
method, about 70 metrics more (%s $). Your own KMS key costs %s $. Prod's web ACL adds %s $ to a million requests,
blocked ones included. Prod's `+"`Tracing=Active`"+` adds up to %s $ to a million requests: X-Ray records the first request of each second and %s %%
of the others.
`, m.idleMetrics, m.metrics+full, dollars(float64(m.metrics+full)*m.price("metric", 0)), dollars(400*m.price("metric", 0)),
		dollars(70*m.price("metric", 0)), dollars(m.price("key", 0)), dollars(m.price("acl_request",
			0)*1e6), dollars(m.price("trace", 0)*1e6),
		number(m.unit("traced_share")*100)), idle, prod
}

// flood is the table of what a day of requests without credentials costs in each stage of samconfig.toml: as many as
// the throttles let through, to each route. WAF bills what it and the throttles turn away, too.
func (m *model) flood() string {
	s := current()
	settings, stages := s.doc.list("Resources", "ApiStage", "Properties", "MethodSettings"),
		[]string{"dev", "staging", "prod"}
	set := func(stage, name string) float64 {
		value, _ := strconv.ParseFloat(configured(s, stage, name), 64)
		return value
	}
	slow, _ := strconv.ParseFloat(show(at(settings[1], "ThrottlingRateLimit")), 64)
	slow *= float64(len(settings) - 1)
	sent, milliseconds := m.quota("gateway_rate"), m.unit("refused_milliseconds")
	refused := m.request(operationUnits{Reads: 1, Milliseconds: milliseconds, ResponseBytes: m.unit("refused_bytes")}, 0)
	page := m.request(operationUnits{Milliseconds: milliseconds, ResponseBytes: m.unit("docs_bytes")}, 0)
	head := []string{"$ a day, " + m.Regions[0]}
	rows := [][]string{{fmt.Sprintf("%d routes, refused with 401 or 404", len(s.routes()))},
		{fmt.Sprintf("The documentation, %s files a second", number(slow))}, {"From one address alone"}}
	for _, stage := range stages {
		rate, address, firewall, trace := set(stage, "ApiRequestsPerSecond"), math.Inf(1), 0.0, 0.0
		if limit := set(stage, "AddressRequestsPer5Minutes"); limit > 0 {
			address, firewall = limit/300, m.price("acl_request", 0)
		}
		if configured(s, stage, "Tracing") == "Active" {
			trace = m.price("trace", 0)
		}
		head = append(head, fmt.Sprintf("%s: %s a second and route", stage, number(rate)))
		all := min(rate*float64(len(s.routes())), sent)
		pages := min(slow, address) // an address asks for what costs most
		for i, passed := range []struct{ refused, pages float64 }{{all, 0}, {0, slow}, {min(all, address-pages), pages}} {
			traces := 1 + m.unit("traced_share")*(passed.refused+passed.pages-1)
			sum := passed.refused*refused + passed.pages*page + sent*firewall + traces*trace
			rows[i] = append(rows[i], dollars(sum*24*3600))
		}
	}
	return table(head, rows) + fmt.Sprintf("\nWith a web ACL %s $ of each row are WAF's, for %s requests a second that "+
		"arrive.\n", dollars(sent*m.price("acl_request", 0)*24*3600), number(sent))
}

// project is the table of what a project costs that sends nothing.
func (m *model) project() string {
	const projects = 1000.0
	read, wallets := m.price("read", 0), projects*m.unit("wallet_bytes")
	kept := (wallets + projects*m.unit("project_bytes")) / gigabyte * (m.price("storage", 0) + m.price("recovery", 0))
	// A scan reads pages that are rounded up to 4 KB, for half of the price where a stale read will do. The hourly
	// comparison is a stale scan, and reads and writes the pages of the weeks.
	scan, weeks, pages := math.Ceil(wallets/4096), projects*m.unit("week_bytes"), min(projects, 256)
	hourly := scan/2*read + max(pages, weeks/4096)*read + max(pages, weeks/1024)*m.price("write", 0)
	return table([]string{"A month, " + m.Regions[0], "$ for 1,000 projects"}, [][]string{
		{"Items in the tables, and their point-in-time recovery", number(kept)},
		{"The settling function's reads of the wallets, and its hourly comparison",
			number(scan*m.runs["settle"]*read + hourly*hoursOfMonth)},
		{"Each kind of integration with a vendor account of the project's own (BYOK), both environments",
			dollars(projects * m.price("secret", 0))},
	})
}

// storage is the table of data out, storage and backups.
func (m *model) storage() string {
	var rows [][]string
	row := func(what string, amount float64, price string) {
		cells := []string{what}
		for region := range m.Regions {
			cells = append(cells, dollars(amount*m.price(price, region)))
		}
		rows = append(rows, cells)
	}
	entries := 1e6 * m.unit("ledger_entry_bytes")
	row("Data out, a GB", 1, "data_out")
	row("Ledger of a million charges, a month and every month after", entries/gigabyte, "storage")
	row("Each read of it: svc usage, a statement, svc ledger verify", entries/4096, "read")
	row("Its point-in-time recovery", entries/gigabyte, "recovery")
	row("Logs of a million requests, kept for a month", 1e6*m.unit("log_bytes")/gigabyte, "log_storage")
	return table(slices.Concat([]string{"$"}, m.Regions), rows)
}

// rates is the table of what each rate asks of each quota, and its price.
func (m *model) rates() string {
	all := []float64{100, 1000, 10_000}
	head := across(all, func(rate float64) string { return number(rate) + " a second" }, "Quota", "Value")
	each := func(operationUnits) float64 { return 1 }
	// each request with a vendor, if no cached secret served it
	secrets := func(o operationUnits) float64 { return map[bool]float64{true: 1}[o.Vendor > 0] }
	var rows [][]string
	for _, d := range []struct {
		name  string
		quota float64
		of    func(operationUnits) float64 // what a request asks of the quota
	}{
		{"API Gateway", m.quota("gateway_rate"), each},
		{"Lambda, executions at once", m.quota("concurrency"), m.seconds},
		{"Lambda, invocations", m.quota("invocations") * m.quota("concurrency"), each}, // for the concurrency above
		{"DynamoDB, a new table: wallets", m.quota("new_table_writes"), walletWrites},
		{"DynamoDB, wallets", m.quota("table_writes"), walletWrites},
		{"DynamoDB, counters", m.quota("table_writes"), each},
		{"DynamoDB, ledger", m.quota("table_writes"), ledgerWrites},
		{"CloudWatch Logs, one call for each request at most", m.quota("log_calls"), each},
		{"Secrets Manager, if no secret were cached", m.quota("secret_reads"), secrets},
	} {
		row := []string{d.name, number(d.quota)}
		for _, rate := range all {
			asked := m.perSecond(rate, d.of)
			use := asked / d.quota
			cell := fmt.Sprintf("%s (%.0f %%)", number(asked), use*100)
			if use > 1 {
				cell = "**" + cell + "**"
			}
			row = append(row, cell)
		}
		rows = append(rows, row)
	}
	one := func(what string, of func(rate float64) string) { rows = append(rows, across(all, of, what, "")) }
	one("`ApiRequestsPerSecond`, for the busiest route", func(rate float64) string {
		return number(m.perSecond(rate, func(o operationUnits) float64 {
			return map[bool]float64{true: 1}[strings.HasPrefix(o.Name, "SMS send")]
		}))
	})
	one(fmt.Sprintf("Write units of the wallet of one busy project that has all of them, of %s",
		number(m.quota("key_writes"))), func(rate float64) string {
		paid := m.perSecond(rate, walletWrites) / 2
		if paid > 1000 { // the unit is of a smaller fleet
			return "over 1,000"
		}
		return number(math.Ceil(paid * m.unit("lease_writes")))
	})
	one("Time to that concurrency, from nothing", func(rate float64) string {
		return number(math.Ceil(m.perSecond(rate, m.seconds)/m.quota("scaling"))*10) + " s at most"
	})
	one("Logs, GB an hour", func(rate float64) string { return number(rate * 3600 * m.unit("log_bytes") / gigabyte) })
	one("Ledger grows, GB a day", func(rate float64) string {
		return number(m.perSecond(rate, ledgerEntries) * 86400 * m.unit("ledger_entry_bytes") / gigabyte)
	})
	for region, name := range m.Regions {
		one("**$ an hour**, "+name, func(rate float64) string {
			return dollars(m.perSecond(rate, func(o operationUnits) float64 { return m.request(o, region) }) * 3600)
		})
	}
	return table(head, rows)
}
