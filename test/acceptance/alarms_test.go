package acceptance

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"svcapi/local/build"
	"svcapi/local/events"
	"svcapi/local/lambda"
	"svcapi/local/template"
	"svcapi/local/workdir"
	"svcapi/test/must"
)

// metrics holds the values of CloudWatch metrics within one period, by namespace, name and dimensions.
type metrics map[string][]float64

func metricKey(namespace, name string, dimensions map[string]string) string {
	return fmt.Sprint(namespace, " ", name, " ", dimensions)
}

// read adds the metrics of log lines ("Embedded metric format specification", CloudWatch user guide).
func (m metrics) read(log string) {
	for line := range strings.Lines(log) {
		var values map[string]any
		var embedded struct {
			AWS struct {
				CloudWatchMetrics []struct {
					Namespace  string
					Dimensions [][]string
					Metrics    []struct{ Name string }
				}
			} `json:"_aws"`
		}
		if json.Unmarshal([]byte(line), &values) != nil || json.Unmarshal([]byte(line), &embedded) != nil {
			continue // no JSON object: CloudWatch finds no metric, either
		}
		for _, d := range embedded.AWS.CloudWatchMetrics {
			for _, names := range d.Dimensions {
				dimensions := map[string]string{}
				for _, name := range names {
					dimensions[name] = fmt.Sprint(values[name])
				}
				for _, metric := range d.Metrics {
					key := metricKey(d.Namespace, metric.Name, dimensions)
					m[key] = append(m[key], values[metric.Name].(float64))
				}
			}
		}
	}
}

// alarm is an AWS::CloudWatch::Alarm of metric math.
type alarm struct {
	AlarmName, ComparisonOperator, TreatMissingData string
	Threshold                                       float64
	EvaluationPeriods                               int
	Metrics                                         []struct {
		Expression string
		MetricStat struct {
			Stat   string
			Metric struct {
				Namespace, MetricName string
				Dimensions            []struct{ Name, Value string }
			}
		}
	}
}

// canaryAlarm returns the alarm of a function's version, as template.yaml declares the alarm.
func canaryAlarm(t *testing.T, f template.Function, version string) (a alarm) {
	t.Helper()
	var declared struct {
		Resources map[string]struct {
			Properties map[string]any `yaml:"Properties"`
		} `yaml:"Resources"`
	}
	must.Succeed(t, yaml.Unmarshal([]byte(readFile(t, inRoot(t, "template.yaml"))), &declared))
	properties, err := json.Marshal(declared.Resources[strings.TrimSuffix(f.LogicalID, "Function")+
		"CanaryAlarm"].Properties)
	must.Succeed(t, err)
	// A reference of its own is the name alone, because YAML drops its tag.
	resolved := strings.NewReplacer("${Stage}", fixture.stack.Parameters["Stage"], "${"+f.LogicalID+"}", f.Name,
		"${"+f.LogicalID+".Version.Version}", version, `"`+f.LogicalID+`.Version.Version"`, `"`+version+`"`, `"`+f.LogicalID+
			`"`, `"`+f.Name+`"`)
	must.Succeed(t, json.Unmarshal([]byte(resolved.Replace(string(properties))), &a))
	return a
}

// fires evaluates the alarm in a period. The function knows no more than the alarms of deployments use.
func (a alarm) fires(t *testing.T, m metrics) bool {
	t.Helper()
	sum, known := 0.0, 0
	for _, metric := range a.Metrics {
		dimensions := map[string]string{}
		for _, d := range metric.MetricStat.Metric.Dimensions {
			dimensions[d.Name] = d.Value
		}
		// SUM adds the metrics that have a value.
		values := m[metricKey(metric.MetricStat.Metric.Namespace, metric.MetricStat.Metric.MetricName, dimensions)]
		for _, value := range values {
			sum += value
		}
		known += len(values)
		if metric.Expression+metric.MetricStat.Stat != "SUM(METRICS())" && metric.Expression+metric.MetricStat.Stat != "Sum" {
			t.Fatalf("%s: %+v is not known here", a.AlarmName, metric)
		}
	}
	if a.EvaluationPeriods != 1 || a.ComparisonOperator != "GreaterThanOrEqualToThreshold" ||
		a.TreatMissingData != "notBreaching" {
		t.Fatalf("%+v is not known here", a)
	}
	return known > 0 && sum >= a.Threshold
}

// deployed runs events through a version of a function, adds what Lambda counts, and returns the log.
func deployed(t *testing.T, f template.Function, binary, version string, m metrics, payloads ...[]byte) string {
	t.Helper()
	dir := t.TempDir()
	host, err := lambda.HostOf(lambda.Options{
		LogDir: dir, Jail: fixture.stack.Jail, Concurrency: 1, Environment: map[string]string{"SVC_LOCAL": "1"},
	}, withVariable(f, "AWS_LAMBDA_FUNCTION_VERSION", version), binary)
	must.Succeed(t, err)
	defer host.Close()
	key := metricKey("AWS/Lambda", "Errors",
		map[string]string{"FunctionName": f.Name, "Resource": f.Name + ":live", "ExecutedVersion": version})
	for _, payload := range payloads {
		result, err := host.Invoke(t.Context(), f.LogicalID, payload)
		if err == nil {
			err = host.AwaitIdle(t.Context(), f.LogicalID)
		}
		must.Succeed(t, err)
		m[key] = append(m[key], map[bool]float64{true: 1}[result.FunctionError != ""])
	}
	log := readFile(t, filepath.Join(dir, f.Folder+".log"))
	m.read(log)
	return log
}

// compiled returns the cases of events/cases.json, a function that makes an event of one, and the compiled functions.
func compiled(t *testing.T) (all map[string]events.Case, event func(string) (string, []byte),
	binaries map[string]string) {
	t.Helper()
	all, err := events.Read(inRoot(t, "events"))
	if err == nil {
		binaries, err = build.Functions(t.Context(), fixture.stack.Template.Functions)
	}
	must.Succeed(t, err)
	return all, func(name string) (string, []byte) {
		function, payload, err := all[name].Event(fixture.stack.Template)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return function, payload
	}, binaries
}

// inRoot returns the path of a file of the repository.
func inRoot(t *testing.T, name string) string {
	t.Helper()
	root, err := workdir.Root()
	must.Succeed(t, err)
	return filepath.Join(root, name)
}

// withVariable returns a function with another value of a variable.
func withVariable(f template.Function, variable, value string) template.Function {
	f.Environment = maps.Clone(f.Environment)
	f.Environment[variable] = value
	return f
}

// TestCanary: the alarm that a deployment watches fires for a version that responds with a 500 where the service itself
// fails, and for one that cannot start. The alarm of the fix does not (docs/decisions/operating.md#canary).
func TestCanary(t *testing.T) {
	local(t)
	t.Parallel()
	all, event, binaries := compiled(t)
	for _, c := range []struct{ served, refused, variable string }{
		{"sms-send-byok", "sms-send-rejected", "PROJECTS_TABLE"},
		{"vpn-failover", "vpn-unavailable", "PROJECTS_TABLE"},
		{"location-unknown", "location-unreachable", "PROJECTS_TABLE"},
		{"barcode-generate-svg", "barcode-generate-no-credits", "PROJECTS_TABLE"},
		{"currency-pair-cross", "currency-pair-unauthorized", "PROJECTS_TABLE"},
		{"pdf-generate-no-scripts", "pdf-generate-invalid", "PROJECTS_TABLE"},
		{"pdf-generate-no-scripts", "pdf-generate-invalid", "PDF_RENDERER"},
	} {
		id, success := event(c.served)
		_, refusal := event(c.refused)
		f, _ := fixture.stack.Template.Function(id)
		m := metrics{}
		log := map[string]string{
			"7": deployed(t, withVariable(f, c.variable, "svc-local-nothing"), binaries[id], "7", m, success, refusal),
			"8": deployed(t, f, binaries[id], "8", m, success, refusal),
			"9": deployed(t, withVariable(f, "PROJECT_CACHE_SECONDS", "soon"), binaries[id], "9", m, success),
		}
		names := map[string]bool{}
		for version, want := range map[string]bool{"7": true, "8": false, "9": true} {
			a := canaryAlarm(t, f, version)
			if names[a.AlarmName] = true; a.fires(t, m) != want {
				t.Errorf("%s: the alarm %s fires: %v: %v", id, a.AlarmName, !want, m)
			}
		}
		// The alarms of the gateway subtract the functions' own failures, which have these metrics.
		for status, name := range map[string]string{"4": "ClientErrors", "5": "ServerErrors"} {
			failures := strings.Count(log["7"]+log["8"]+log["9"], `"status":`+status)
			if got := len(m[metricKey("SVC/local", name, map[string]string{})]); got != failures {
				t.Errorf("%s: %s counts %d of %d responses", id, name, got, failures)
			}
		}
		if len(names) != 3 {
			t.Errorf("%s: versions share an alarm: %v", id, names)
		}
		for version, want := range map[string][]int{"7": {500}, "8": {200, all[c.refused].Expected.Status}} {
			for _, status := range want {
				if !strings.Contains(log[version], fmt.Sprintf(`"status":%d`, status)) {
					t.Errorf("%s, version %s: no response with %d:\n%s", id, version, status, log[version])
				}
			}
		}
	}
}
