// Package telemetry prints one JSON line for each event: the log entry, with metrics in CloudWatch's embedded format.
package telemetry

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"
)

// Namespace is the CloudWatch namespace of every metric. A known stage follows, for alarms of its own: SVC/prod.
const Namespace = "SVC"

// Config is read from the variables of Lambda.
type Config struct {
	// Level is the lowest level of logged entries: TRACE, DEBUG, INFO, WARN, ERROR or FATAL.
	Level string `env:"AWS_LAMBDA_LOG_LEVEL" envDefault:"INFO"`
	// Stage is the stage in the namespace.
	Stage string `env:"STAGE"`
	// Detail is basic or full. Each metric has a price: basic counts a value by the dimensions that Metric.By names, full
	// also by each combination of operation, outcome and vendor.
	Detail string `env:"METRIC_DETAIL" envDefault:"basic"`
	// SourceIP is hash or plain: how the line of a request names the address that the request came from.
	SourceIP string `env:"LOG_SOURCE_IP" envDefault:"hash"`
	// Function is the name of the Lambda function, and Version is the version that runs.
	Function string `env:"AWS_LAMBDA_FUNCTION_NAME"`
	Version  string `env:"AWS_LAMBDA_FUNCTION_VERSION"`
}

// Unit is a CloudWatch unit.
type Unit string

// The units in use (CloudWatch API, MetricDatum).
const (
	Count        Unit = "Count"
	Milliseconds Unit = "Milliseconds"
	Seconds      Unit = "Seconds"
)

// Metric is one value of an event.
type Metric struct {
	Name  string
	Unit  Unit
	Value float64 `json:"-"`
	// By names the dimensions that count the value, each for itself; ByStage counts the value without a dimension, and so
	// does an empty By. ByVersion counts the value for the running version of the function alone.
	By []string `json:"-"`
	// SkipZero leaves a value of 0 to the log: CloudWatch bills a metric for the hours in which it has a value.
	SkipZero bool `json:"-"`
}

// ByStage in Metric.By counts a value for the whole stage.
const ByStage = ""

// ByVersion in Metric.By is a dimension that the Logger adds, with the value FUNCTION:VERSION. The alarms of
// deployments watch it (docs/decisions/operating.md#canary).
const ByVersion = "version"

// Failures returns the metric of a status that the gateway's alarms subtract from the gateway's own count.
func Failures(status int) []Metric {
	switch {
	case status >= http.StatusInternalServerError:
		return []Metric{{Name: "ServerErrors", Unit: Count, Value: 1}}
	case status >= http.StatusBadRequest:
		return []Metric{{Name: "ClientErrors", Unit: Count, Value: 1}}
	}
	return nil
}

// Dimension distinguishes metrics. A project is never a dimension, because each would be a metric with a price.
type Dimension struct{ Name, Value string }

// Event is one line.
type Event struct {
	Level      slog.Level
	Message    string
	Dimensions []Dimension // of the metrics and of the log entry
	Metrics    []Metric    // printed at every level
	Attributes []slog.Attr // of the log entry, printed from the configured level on
}

// Logger writes events. A Logger is safe for concurrent use.
type Logger struct {
	handler   slog.Handler
	level     slog.Level
	namespace string
	cfg       Config
}

// levels maps Lambda's names to slog's numbers.
var levels = map[string]slog.Level{
	"TRACE": slog.LevelDebug - 4, "DEBUG": slog.LevelDebug, "INFO": slog.LevelInfo,
	"WARN": slog.LevelWarn, "ERROR": slog.LevelError, "FATAL": fatal,
}

// fatal is the highest level, which Lambda logs at every setting. Only lines with metrics alone have this level.
const fatal = slog.LevelError + 4

// names are the keys of Lambda's JSON log format by slog's keys.
var names = map[string]string{slog.TimeKey: "timestamp", slog.MessageKey: "message"}

// New returns a logger that writes to w. An unknown level counts as INFO.
func New(w io.Writer, cfg Config) *Logger {
	level, known := levels[strings.ToUpper(cfg.Level)]
	if !known {
		level = slog.LevelInfo
	}
	options := &slog.HandlerOptions{
		Level: slog.Level(-100), // Emit filters, because metrics are printed at every level
		ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			if len(groups) > 0 {
				return a
			}
			if name, ok := names[a.Key]; ok {
				a.Key = name
			}
			if a.Key == slog.LevelKey && a.Value.Any() == fatal { // slog would write ERROR+4
				a.Value = slog.StringValue("FATAL")
			}
			return a
		},
	}
	namespace := Namespace
	if cfg.Stage != "" {
		namespace += "/" + cfg.Stage
	}
	return &Logger{slog.NewJSONHandler(w, options), level, namespace, cfg}
}

// Slog returns a logger of lines without metrics, which ignores the configured level.
func (l *Logger) Slog() *slog.Logger { return slog.New(l.handler) }

// Emit writes the event. Below the configured level Emit writes only the metrics, as a line of the highest level,
// because Lambda drops lines below the configured level (AWS Lambda Developer Guide, Log-level filtering).
func (l *Logger) Emit(ctx context.Context, e Event) {
	entry := e.Level >= l.level
	counted := l.embedded(e) // the format allows no line without a directive
	if !entry && counted == nil {
		return
	}
	now, level, message := time.Now(), e.Level, e.Message
	if !entry {
		level, message = fatal, "metrics"
	}
	record := slog.NewRecord(now, level, message, 0)
	for _, d := range e.Dimensions {
		record.AddAttrs(slog.String(d.Name, d.Value))
	}
	if counted != nil {
		record.AddAttrs(slog.Group("_aws", slog.Int64("Timestamp", now.UnixMilli()),
			slog.Any("CloudWatchMetrics", counted)))
	}
	for _, m := range e.Metrics {
		record.AddAttrs(slog.Float64(m.Name, m.Value))
		if slices.Contains(m.By, ByVersion) {
			record.AddAttrs(slog.String(ByVersion, l.cfg.Function+":"+l.cfg.Version))
		}
	}
	if entry {
		record.AddAttrs(e.Attributes...)
	}
	_ = l.handler.Handle(ctx, record) // a broken log cannot be reported
}

// sourceDigits is the length of a hashed address. Six hexadecimal digits distinguish the clients of an attack, and each
// value is shared by some 250 IPv4 addresses, so that no table of all addresses turns a value back into one.
const sourceDigits = 6

// Source returns an attribute with an address or its hash with the stage (docs/decisions/operating.md#log-lines).
func (l *Logger) Source(address string) slog.Attr {
	const name = "source_ip"
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return slog.String(name, "")
	}
	if l.cfg.SourceIP == "plain" {
		return slog.String(name, ip.Unmap().String())
	}
	digest := sha256.Sum256([]byte(l.cfg.Stage + " " + ip.Unmap().String()))
	return slog.String(name, hex.EncodeToString(digest[:])[:sourceDigits])
}

// Exit ends a program that cannot start, and logs the reason as an error. Lambda would log a line of text as INFO.
func Exit(err error) {
	New(os.Stderr, Config{}).Emit(context.Background(), Event{
		Level: slog.LevelError, Message: "start", Attributes: []slog.Attr{slog.String("error", err.Error())},
	})
	os.Exit(1)
}

type directive struct {
	Namespace  string
	Dimensions [][]string
	Metrics    []Metric // names and units
}

// embedded returns the directives of the embedded metric format: one for the metrics that share their dimensions.
func (l *Logger) embedded(e Event) []directive {
	var present []string
	for _, d := range e.Dimensions {
		if d.Value != "" {
			present = append(present, d.Name)
		}
	}
	var directives []directive
	for _, m := range e.Metrics {
		if m.SkipZero && m.Value == 0 {
			continue
		}
		sets := l.sets(m, present)
		i := slices.IndexFunc(directives,
			func(d directive) bool { return slices.EqualFunc(d.Dimensions, sets, slices.Equal) })
		if i < 0 {
			i, directives = len(directives), append(directives, directive{Namespace: l.namespace, Dimensions: sets})
		}
		directives[i].Metrics = append(directives[i].Metrics, m)
	}
	return directives
}

// sets returns the sets of dimensions that count a metric. The present dimensions are those with a value.
func (l *Logger) sets(m Metric, present []string) [][]string {
	if slices.Contains(m.By, ByVersion) {
		return [][]string{{ByVersion}}
	}
	var sets [][]string
	for _, name := range m.By {
		switch {
		case name == ByStage:
			sets = append(sets, []string{})
		case slices.Contains(present, name):
			sets = append(sets, []string{name})
		}
	}
	if l.cfg.Detail == "full" && len(m.By) > 0 {
		for i := range present {
			if prefix := present[:i+1]; !slices.ContainsFunc(sets, func(s []string) bool { return slices.Equal(s, prefix) }) {
				sets = append(sets, slices.Clone(prefix))
			}
		}
	}
	if sets == nil {
		sets = [][]string{{}}
	}
	return sets
}

// timeForLogging is the end of a scheduled run's time, in which the function writes its log line.
const timeForLogging = 2 * time.Second

// BeforeLogging returns a context for the work of a scheduled run: its deadline leaves timeForLogging for the log line.
func BeforeLogging(ctx context.Context) (context.Context, context.CancelFunc) {
	if deadline, ok := ctx.Deadline(); ok {
		return context.WithDeadline(ctx, deadline.Add(-timeForLogging))
	}
	return context.WithCancel(ctx)
}
