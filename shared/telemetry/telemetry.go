// Package telemetry prints one JSON line per event. The line is at once the
// log entry and, in CloudWatch's embedded metric format, its metrics.
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

// Namespace is the CloudWatch namespace of every metric; where a stage is known it follows, SVC/prod:
// stages of one account have alarms of their own.
const Namespace = "SVC"

// Config is read from what Lambda sets.
type Config struct {
	// Level is the lowest level that is logged: TRACE, DEBUG, INFO, WARN, ERROR or FATAL.
	Level string `env:"AWS_LAMBDA_LOG_LEVEL" envDefault:"INFO"`
	// Stage names the stage's part of the namespace.
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
	// Across makes the value count by the second dimension alone, too: over all values of the first. An alarm takes ten
	// metrics at most, and the stage has more operations.
	Across bool
}

// Dimension is one name and value that metrics are told apart by. A project
// is never a dimension: each one would be a metric that is paid for.
type Dimension struct{ Name, Value string }

// Event is one line.
type Event struct {
	Level      slog.Level
	Message    string
	Dimensions []Dimension // of the metrics; also printed
	Metrics    []Metric    // printed whatever the level
	Attributes []slog.Attr // the log entry; printed when the level asks for it
	At         time.Time   // zero: now
}

// Logger writes events. It is safe for concurrent use.
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

// fatal is the highest level, which Lambda passes on whatever level is configured. Nothing but metrics has it.
const fatal = slog.LevelError + 4

// names are the keys that Lambda's JSON log format has for slog's.
var names = map[string]string{slog.TimeKey: "timestamp", slog.MessageKey: "message"}

// New returns a logger that writes to w. An unknown level counts as INFO.
func New(w io.Writer, cfg Config) *Logger {
	level, known := levels[strings.ToUpper(cfg.Level)]
	if !known {
		level = slog.LevelInfo
	}
	options := &slog.HandlerOptions{
		Level: slog.Level(-100), // Emit decides: metrics are printed at every level
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

// Emit writes the event. Below the configured level only its metrics are written, as a line of the highest level: Lambda
// drops lines below the configured level by their "level", those without one as INFO, and takes FATAL at every setting
// (AWS Lambda Developer Guide, Log-level filtering).
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
	_ = l.handler.Handle(ctx, record) // nowhere is left to report a broken log to
}

// Info is Emit of a plain entry without metrics.
func (l *Logger) Info(ctx context.Context, message string, attributes ...slog.Attr) {
	l.Emit(ctx, Event{Level: slog.LevelInfo, Message: message, Attributes: attributes})
}

// Exit ends a program that cannot start, with the reason as an entry that Lambda passes on at the level WARN: of a line of
// text it says INFO.
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

// embedded is the _aws member of the CloudWatch embedded metric format. Each
// leading part of the dimensions is a set of its own, so that graphs can sum
// over what comes later. Dimensions without a value are left out.
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
