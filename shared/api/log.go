package api

import (
	"context"
	"log/slog"
	"unicode/utf8"

	"svcapi/shared/telemetry"
)

// outcomes name a status's class where metrics are told apart by it.
var outcomes = map[int]string{
	401: "unauthorized", 402: "insufficient_funds", 429: "throttled", 502: "vendor_failed", 503: "unavailable",
}

// outcome is the dimension of metrics: bounded, and the same for all operations.
func (a *answer) outcome() string {
	name, named := outcomes[a.status]
	switch {
	case a.failure == nil:
		return "success"
	case a.failure.Uncertain:
		return "uncertain"
	case a.failure.Code == CodeProjectPaused:
		return "paused"
	case named:
		return name
	case a.failure.Vendor != "" && a.status >= 500:
		return "vendor_failed"
	case a.status >= 500:
		return "error"
	}
	return "refused"
}

// maxPayload is how much of a request's body a log entry holds, in bytes.
const maxPayload = 4 << 10

// record prints the request's one line.
func (s *Service) record(ctx context.Context, x *exchange, a answer) {
	elapsed := s.now().Sub(x.started)
	vendor, level := x.vendor, slog.LevelInfo
	attributes := []slog.Attr{
		slog.String("request_id", x.id), slog.Int("status", a.status), slog.String("method", x.request.Method),
		slog.Int("response_bytes", len(a.body)),
	}
	if x.record != nil {
		attributes = append(attributes, slog.String("project", x.record.ID),
			slog.String("environment", string(x.environment)), slog.String("mode", string(x.mode)))
	}
	if e := a.failure; e != nil {
		vendor = e.Vendor
		attributes = append(attributes, slog.String("code", e.Code))
		if !x.privacy {
			attributes = append(attributes, slog.String("error", e.Error()))
		}
		if a.status >= 500 && e.Code != CodeProjectPaused {
			level = slog.LevelError
		}
	}
	if x.playground {
		attributes = append(attributes, slog.String("client", "playground"))
	}
	if x.decoded && !x.privacy && len(x.body) > 0 {
		attributes = append(attributes, slog.String("payload", cut(string(x.body), maxPayload)))
	}
	operation := x.operation
	if operation == "" {
		operation = "none"
	}
	s.log.Emit(ctx, telemetry.Event{
		Level: level, Message: "request",
		Dimensions: []telemetry.Dimension{{Name: "operation", Value: operation}, {Name: "outcome", Value: a.outcome()}, {Name: "vendor", Value: vendor}},
		Metrics: append([]telemetry.Metric{
			{Name: "Requests", Unit: telemetry.Count, Value: 1, Across: true},
			{Name: "Duration", Unit: telemetry.Milliseconds, Value: float64(elapsed.Microseconds()) / 1000},
			{Name: "Credits", Unit: telemetry.Count, Value: float64(x.credits)},
		}, x.metrics...),
		Attributes: append(attributes, x.attributes...),
	})
}

// cut shortens a text to at most n bytes without splitting a character.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
