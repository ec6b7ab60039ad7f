// Package telemetry prints one JSON line for each event. The line is the log entry and contains the metrics in CloudWatch's
// embedded metric format.
package telemetry

import (
	"context"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"
)

// Namespace is the CloudWatch namespace of every metric. A known stage follows, as in SVC/prod, so that the stages of an
// account have separate alarms.
const Namespace = "SVC"

// Config is read from the variables of Lambda.
type Config struct {
	// Level is the lowest level of logged entries: TRACE, DEBUG, INFO, WARN, ERROR or FATAL.
	Level string `env:"AWS_LAMBDA_LOG_LEVEL" envDefault:"INFO"`
	// Stage is the stage in the namespace.
	Stage string `env:"STAGE"`
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
	Value float64
	// Across also counts the value by the second dimension alone, because an alarm can sum at most ten metrics and a stage
	// has more operations.
	Across bool
}

// Dimension is one name and value that distinguishes metrics. A project is never a dimension, because each project would be a
// metric with a price.
type Dimension struct{ Name, Value string }

// Event is one line.
type Event struct {
	Level      slog.Level
	Message    string
	Dimensions []Dimension // of the metrics and of the log entry
	Metrics    []Metric    // printed at every level
	Attributes []slog.Attr // of the log entry, printed from the configured level on
	At         time.Time   // zero for the current time
}

// Logger writes events. A Logger is safe for concurrent use.
type Logger struct {
	handler   slog.Handler
	level     slog.Level
	namespace string
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
	return &Logger{handler: slog.NewJSONHandler(w, options), level: level, namespace: namespace}
}

// Emit writes the event. Below the configured level Emit writes only the metrics, as a line of the highest level, because
// Lambda drops lines below the configured level (AWS Lambda Developer Guide, Log-level filtering).
func (l *Logger) Emit(ctx context.Context, e Event) {
	entry := e.Level >= l.level
	if !entry && len(e.Metrics) == 0 {
		return
	}
	if e.At.IsZero() {
		e.At = time.Now()
	}
	level, message := e.Level, e.Message
	if !entry {
		level, message = fatal, "metrics"
	}
	record := slog.NewRecord(e.At, level, message, 0)
	for _, d := range e.Dimensions {
		record.AddAttrs(slog.String(d.Name, d.Value))
	}
	if len(e.Metrics) > 0 {
		record.AddAttrs(slog.Any("_aws", embedded(e, l.namespace)))
		for _, m := range e.Metrics {
			record.AddAttrs(slog.Float64(m.Name, m.Value))
		}
	}
	if entry {
		record.AddAttrs(e.Attributes...)
	}
	_ = l.handler.Handle(ctx, record) // a broken log cannot be reported
}

// Info writes an entry without metrics.
func (l *Logger) Info(ctx context.Context, message string, attributes ...slog.Attr) {
	l.Emit(ctx, Event{Level: slog.LevelInfo, Message: message, Attributes: attributes})
}

// Exit ends a program that cannot start, and logs the reason as an error. Lambda would log a line of text as INFO.
func Exit(err error) {
	New(os.Stderr, Config{}).Emit(context.Background(), Event{
		Level: slog.LevelError, Message: "start", Attributes: []slog.Attr{slog.String("error", err.Error())},
	})
	os.Exit(1)
}

type metadata struct {
	Timestamp         int64
	CloudWatchMetrics []directive
}

type directive struct {
	Namespace  string
	Dimensions [][]string
	Metrics    []definition
}

type definition struct {
	Name string
	Unit Unit
}

// embedded returns the _aws member of the CloudWatch embedded metric format. Each prefix of the dimensions is a set, so that
// graphs can sum over the later dimensions. Dimensions without a value are omitted.
func embedded(e Event, namespace string) metadata {
	var sets [][]string
	var set []string
	for _, d := range e.Dimensions {
		if d.Value == "" {
			continue
		}
		set = append(set, d.Name)
		sets = append(sets, slices.Clone(set))
	}
	if sets == nil {
		sets = [][]string{{}}
	}
	definitions := make([]definition, len(e.Metrics))
	var across []definition
	for i, m := range e.Metrics {
		definitions[i] = definition{m.Name, m.Unit}
		if m.Across {
			across = append(across, definitions[i])
		}
	}
	directives := []directive{{namespace, sets, definitions}}
	if len(across) > 0 && len(set) > 1 {
		directives = append(directives, directive{namespace, [][]string{set[1:2]}, across})
	}
	return metadata{e.At.UnixMilli(), directives}
}
