package policy

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"svcapi/local/template"
)

// canary ends the names of the alarms that deployments alone watch.
const canary = "CanaryAlarm"

// declaredOperation is an operation in a function's code, from its name to its decoder, or a row of a table of free
// ones, from its name to its path.
var declaredOperation = regexp.MustCompile(`(?s)Name:\s*"([a-z_]+)",\s*Method:.*?Decode:|\{"([a-z]+_[a-z]+)", "/`)

// operations returns the operations by their names, as metrics carry them, and whether each has a price.
var operations = sync.OnceValue(func() map[string]bool {
	paid := map[string]bool{}
	for file := range product() {
		for _, match := range declaredOperation.FindAllStringSubmatch(files()[file], -1) {
			paid[match[1]+match[2]] = strings.Contains(match[0], "Price: ")
		}
	}
	return paid
})

// awsMetrics are the namespaces of AWS's own metrics that alarms use, with the metrics.
var awsMetrics = map[string][]string{
	"AWS/ApiGateway": {"4XXError", "5XXError", "Count"},
	"AWS/DynamoDB":   {"ReadThrottleEvents", "WriteThrottleEvents"},
	"AWS/Lambda":     {"Duration", "Errors", "Throttles"},
}

// mostMetrics is the number of metrics that an alarm of metric math takes (CloudWatch user guide, "Create a CloudWatch
// alarm based on a metric math expression").
const mostMetrics = 10

var (
	chapter       = regexp.MustCompile(`Runbook: ([a-z-]+)$`)
	mathID        = regexp.MustCompile(`\b[a-z]\w*\b`)
	printedMetric = regexp.MustCompile(`Name: "([A-Za-z_]+)",\s*Unit:[^{}]*?(?:By:\s*\[\]string\{([^}]*)\}[^{}]*)?\}` +
		`|state\.metric\("([A-Za-z]+)"\)`)
	quotedName    = regexp.MustCompile(`"([a-z_]+)"`)
	scheduledFile = regexp.MustCompile("^functions/(settle|ratesync|security/listsync|sms/resolve)/")
)

// ownMetric is a metric that functions print.
type ownMetric struct {
	by   []string // the dimensions that count the metric; "" is the stage
	idle bool     // the metric has values although nobody sends a request
}

// ownMetrics returns the metrics that the functions print, by name.
var ownMetrics = sync.OnceValue(func() map[string]ownMetric {
	metrics := map[string]ownMetric{}
	for _, path := range slices.Sorted(maps.Keys(product())) {
		scheduled := scheduledFile.MatchString(path)
		for _, match := range printedMetric.FindAllStringSubmatch(files()[path], -1) {
			by, name := match[2], match[1]+match[3]
			var dimensions []string
			if by == "" || strings.Contains(by, "telemetry.ByStage") {
				dimensions = []string{""}
			}
			if strings.Contains(by, "telemetry.ByVersion") {
				dimensions = append(dimensions, "version")
			}
			for _, quoted := range quotedName.FindAllStringSubmatch(by, -1) {
				dimensions = append(dimensions, quoted[1])
			}
			metrics[name] = ownMetric{dimensions, scheduled && !strings.Contains(match[0], "SkipZero: true")}
		}
	}
	return metrics
})

// outcomes are the values of the dimension "outcome": the texts of its file that no other purpose has.
var outcomes = sync.OnceValue(func() (names []string) {
	_, text, _ := strings.Cut(read("shared", "request", "log.go"), "var outcomes =")
	text, _, _ = strings.Cut(text, "// maxPayload")
	for _, match := range regexp.MustCompile(`(?:: |return |\boutcome[A-Z]\w* += )"([a-z_]+)"`).FindAllStringSubmatch(text,
		-1) {
		names = append(names, match[1])
	}
	slices.Sort(names)
	return slices.Compact(names)
})

// alarms: those of all functions and tables watch each of them, metrics exist, and the runbook has a chapter for each
// alarm.
func alarms(s *templateFile) (f findings) {
	every := map[string][]string{}
	for _, function := range s.functions() {
		shared := map[string]string{"ErrorsAlarm": "Errors Sum", "ThrottlesAlarm": "Throttles Sum",
			"SlowAlarm": "Duration p99"}
		if slices.Contains(ownAlarms, function.id) {
			shared = nil
		}
		for alarm, metric := range shared {
			every[alarm] = append(every[alarm], "AWS/Lambda "+metric+" FunctionName=${"+function.id+"}")
		}
		// docs/decisions/operating.md#canary: Lambda counts the errors of the other functions, which return them to
		// Lambda.
		version := "${" + function.id + "Version.Version}"
		watches := []string{"AWS/Lambda Errors Sum FunctionName=${" + function.id + "} Resource=${" + function.id +
			"}:live ExecutedVersion=" + version}
		if strings.Contains(files()["functions/"+template.Package(function.id)+"/main.go"], "request.Main(") {
			watches = append(watches, "SVC/${Stage} InternalErrors Sum version=${"+function.id+"}:"+version)
		}
		every[function.stem()+canary] = watches
	}
	for _, metric := range []string{"Read", "Write"} {
		for _, table := range s.resources("AWS::DynamoDB::Table") {
			if table.id == "Movements" || table.id == "Resolutions" {
				continue // the operator's command reports the throttle
			}
			every["TablesThrottledAlarm"] = append(every["TablesThrottledAlarm"],
				"AWS/DynamoDB "+metric+"ThrottleEvents Sum TableName=${"+table.id+"}")
		}
	}
	chapters, explained := map[string]bool{}, map[string]bool{}
	for line := range strings.Lines(files()["docs/runbook.md"]) {
		if title, ok := strings.CutPrefix(strings.TrimSpace(line), "## "); ok {
			chapters[strings.ReplaceAll(strings.ToLower(title), " ", "-")] = true // as its link
		}
	}
	own, found := ownMetrics(), map[string][]string{}
	for _, alarm := range s.resources("AWS::CloudWatch::Alarm") {
		metrics := watched(alarm)
		found[alarm.id] = metrics
		if len(metrics) == 0 || len(metrics) > mostMetrics {
			f.add("%s watches %d metrics, want 1 to %d", alarm.id, len(metrics), mostMetrics)
		}
		if match := chapter.FindStringSubmatch(alarm.properties.text("AlarmDescription")); match != nil {
			explained[match[1]] = true
			if !chapters[match[1]] {
				f.add("%s: docs/runbook.md has no chapter %s", alarm.id, match[1])
			}
		}
		f = append(f, mathematics(alarm)...)
		for _, metric := range metrics {
			namespace, rest, _ := strings.Cut(metric, " ")
			name, rest, _ := strings.Cut(rest, " ")
			_, dimensions, _ := strings.Cut(rest, " ")
			by, outcome, _ := strings.Cut(dimensions, "=")
			switch {
			case namespace != "SVC/${Stage}" && !slices.Contains(awsMetrics[namespace], name),
				namespace == "SVC/${Stage}" && !slices.Contains(own[name].by, by):
				f.add("%s watches %s, which nothing prints", alarm.id, metric)
			case by == "outcome" && !slices.Contains(outcomes(), outcome):
				f.add("%s watches %s, which no response has", alarm.id, metric)
			}
		}
	}
	for name, want := range every {
		slices.Sort(want)
		if !slices.Equal(found[name], want) {
			f.add("%s watches %q, want %q", name, found[name], want)
		}
		if len(want) > mostMetrics {
			f.add("%d metrics are too many for %s, which takes %d: the rest needs a second alarm", len(want), name, mostMetrics)
		}
	}
	for title := range chapters {
		if !explained[title] {
			f.add("docs/runbook.md has the chapter %s, which no alarm names", title)
		}
	}
	return f
}

// mathematics checks that an alarm takes one value from its metrics and uses each metric.
func mathematics(alarm resource) (f findings) {
	ids, used, returned, all := map[string]bool{}, map[string]bool{}, 0, false
	for _, item := range alarm.properties.list("Metrics") {
		id := show(at(item, "Id"))
		ids[id] = true
		if at(item, "ReturnData") != false {
			returned++
			used[id] = true
		}
		expression := show(at(item, "Expression"))
		for _, id := range mathID.FindAllString(expression, -1) {
			used[id] = true
		}
		all = all || strings.Contains(expression, "METRICS()")
	}
	if len(ids) > 0 && returned != 1 {
		f.add("%s returns %d values", alarm.id, returned)
	}
	if !all && !maps.Equal(ids, used) {
		f.add("%s has the metrics %v and uses %v", alarm.id, ids, used)
	}
	return f
}

var searched = regexp.MustCompile(`MetricName=\\"([A-Za-z_]+)\\"`)

func dashboard(s *templateFile) (f findings) {
	text := s.doc.text("Resources", "Dashboard", "Properties", "DashboardBody")
	if !json.Valid([]byte(text)) {
		f.add("the dashboard is no JSON")
	}
	// Each widget by function shows every function, and the dashboard shows each alarm of the stage.
	for _, function := range s.functions() {
		if strings.Count(text, "FunctionName=(") != strings.Count(text, "\"${"+function.id+"}\\\"") {
			f.add("a widget by function does not show %s", function.id)
		}
	}
	for _, alarm := range s.resources("AWS::CloudWatch::Alarm") {
		if shown := strings.Count(text, "\"${"+alarm.id+".Arn}\"") == 1; shown == strings.HasSuffix(alarm.id, canary) {
			f.add("the dashboard shows %s: %v", alarm.id, shown)
		}
	}
	for _, match := range searched.FindAllStringSubmatch(text, -1) {
		if ownMetrics()[match[1]].by == nil && !slices.Contains(awsMetrics["AWS/Lambda"], match[1]) {
			f.add("the dashboard shows %s, which nothing prints", match[1])
		}
	}
	return f
}
