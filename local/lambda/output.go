package lambda

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"svcapi/local/template"
	"svcapi/local/workdir"
)

// levels are Lambda's application log levels, the one of the most detail first.
var levels = []string{"TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"}

// output takes what a function's processes print into the function's log. Where the log format is JSON, it leaves out
// lines below the function's level, as Lambda does.
type output struct {
	raw   *os.File // the processes append to it; it has no name any more
	least int      // index in levels; -1: every line is taken

	mu   sync.Mutex
	log  *os.File
	seen int64 // of raw
}

func newOutput(path string, function template.Function) (*output, error) {
	log, err := workdir.OpenLog(path)
	if err != nil {
		return nil, err
	}
	name := filepath.Join(filepath.Dir(path), ".raw-"+rand.Text())
	raw, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_RDWR|os.O_APPEND, 0o600)
	if err = errors.Join(err, os.Remove(name)); err != nil {
		return nil, errors.Join(err, log.Close())
	}
	o := &output{raw: raw, log: log, least: -1}
	if function.LogFormat == "JSON" {
		o.least = slices.Index(levels, function.LogLevel)
	}
	return o, nil
}

// take copies the lines that were printed since the last call; unfinished means that no more of a line can follow.
func (o *output) take(unfinished bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	text, _ := io.ReadAll(io.NewSectionReader(o.raw, o.seen, 1<<62)) // an error of the log cannot be logged
	if last := bytes.LastIndexByte(text, '\n'); !unfinished {
		text = text[:last+1]
	}
	o.seen += int64(len(text))
	for line := range bytes.Lines(text) {
		if o.passes(line) {
			_, _ = o.log.Write(line)
		}
	}
}

// passes reports whether Lambda forwards a line. The key "level" of a JSON object is the level of its line; any other
// line has the level INFO: "If the "level" value field is invalid or missing, Lambda will assign the log output
// the level INFO" (AWS Lambda Developer Guide, Log-level filtering).
func (o *output) passes(line []byte) bool {
	var entry struct {
		Level json.RawMessage `json:"level"`
	}
	var name string
	if json.Unmarshal(line, &entry) != nil || json.Unmarshal(entry.Level, &name) != nil {
		name = "INFO"
	}
	level := slices.Index(levels, strings.ToUpper(name))
	if level < 0 {
		level = slices.Index(levels, "INFO")
	}
	return level >= o.least
}

// platform writes an event of the platform, in Lambda's JSON form (AWS Lambda Developer Guide, Telemetry API Event
// schema reference). The events of what failed have the level WARN, which is the functions' system log level.
func (o *output) platform(kind string, r map[string]any) {
	line, _ := json.Marshal(map[string]any{ // texts and numbers always marshal
		"time": time.Now().UTC().Format("2006-01-02T15:04:05.000Z"), "type": "platform." + kind, "record": r,
	})
	o.mu.Lock()
	defer o.mu.Unlock()
	_, _ = o.log.Write(append(line, '\n'))
}

func (o *output) close() error {
	o.take(true)
	return errors.Join(o.raw.Close(), o.log.Close())
}
