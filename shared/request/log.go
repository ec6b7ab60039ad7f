package request

import (
	"cmp"
	"context"
	"errors"
	"log/slog"

	"svcapi/shared/telemetry"
)

// outcomes are the names by which metrics distinguish statuses.
var outcomes = map[int]string{
	401: "unauthorized", 402: "insufficient_funds", 429: "throttled", 502: "vendor_failed", 503: "unavailable",
}

// The outcomes of limits that have the status of another outcome.
const (
	outcomeGuessed   = "guessed"
	outcomeRecipient = "recipient_limit"
	outcomeDaily     = "daily_limit"
)

// outcome returns the metrics' dimension "outcome", which has few values, the same for all operations.
func (resp *response) outcome() string {
	name, named := outcomes[resp.status]
	switch {
	case resp.failure == nil:
		return "success"
	case resp.failure.Uncertain:
		return "uncertain"
	case resp.failure.outcome != "":
		return resp.failure.outcome
	case resp.failure.Code == CodeProjectPaused:
		return "paused"
	case named:
		return name
	case resp.failure.Vendor != "" && resp.status >= 500:
		return "vendor_failed"
	case resp.status >= 500:
		return "error"
	}
	return "refused"
}

// isOwnFailure reports whether the version that runs has failed: neither a vendor nor an earlier request, whose
// response is repeated, caused the failure (docs/decisions/operating.md#canary).
func (resp *response) isOwnFailure() bool {
	e := resp.failure
	return e != nil && resp.header.Get(replayedHeader) == "" &&
		(e.Code == CodeInternalError && e.Vendor == "" || errors.Is(e, ErrPanicked))
}

// maxPayload is the number of bytes of a request's body that a log entry holds
// (docs/decisions/requests.md#payload-logging); log_payload.go chooses and masks them.
const maxPayload = 4 << 10

// record prints the log line of a request, which is also its metrics (docs/decisions/operating.md#log-lines).
func (s *Service) record(ctx context.Context, state *requestState, resp response) {
	elapsed := s.now().Sub(state.started)
	vendor, level := state.vendor, slog.LevelInfo
	attributes := []slog.Attr{
		slog.String("request_id", state.id), slog.String("extended_request_id", gatewayID(ctx)),
		slog.Int("status", resp.status), slog.String("method", state.request.Method),
		slog.Int("response_bytes", resp.size()), s.log.Source(state.request.RemoteAddr),
	}
	if state.record != nil {
		attributes = append(attributes, slog.String("project", state.record.ID),
			slog.String("environment", string(state.environment)), slog.String("mode", string(state.mode)))
	}
	if e := resp.failure; e != nil {
		vendor = e.Vendor
		attributes = append(attributes, slog.String("code", e.Code), slog.String("reason", string(e.Reason)))
		if !state.privacy {
			attributes = append(attributes, slog.String("error", s.cfg.errorText(e.Error(), e.Quoted)))
		}
		if resp.status >= 500 && e.Code != CodeProjectPaused {
			level = slog.LevelError
		}
	}
	if state.playground {
		attributes = append(attributes, slog.String("client", "playground"))
	}
	if state.decoded && !state.privacy && len(state.body) > 0 {
		if payload := s.cfg.payload(state.body); payload != "" {
			attributes = append(attributes, slog.String("payload", payload))
		}
	}
	attributes = append(attributes, s.sends(state)...)
	metrics := []telemetry.Metric{
		{Name: "Requests", Unit: telemetry.Count, Value: 1, By: []string{"outcome"}},
		{Name: "Duration", Unit: telemetry.Milliseconds, Value: float64(elapsed.Microseconds()) / 1000,
			By: []string{"operation"}},
	}
	if resp.isOwnFailure() { // free while nothing fails
		metrics = append(metrics, telemetry.Metric{Name: "InternalErrors", Unit: telemetry.Count, Value: 1,
			By: []string{telemetry.ByVersion}})
	}
	metrics = append(metrics, telemetry.Failures(resp.status)...)
	if state.price != "" {
		metrics = append(metrics, telemetry.Metric{Name: "Credits", Unit: telemetry.Count, Value: float64(state.credits),
			By: []string{telemetry.ByStage, "operation"}})
	}
	s.log.Emit(ctx, telemetry.Event{
		Level: level, Message: "request",
		Dimensions: []telemetry.Dimension{{Name: "operation", Value: cmp.Or(state.operation, "none")},
			{Name: "outcome", Value: resp.outcome()}, {Name: "vendor", Value: vendor}},
		Metrics:    append(metrics, state.metrics...),
		Attributes: append(attributes, state.attributes...),
	})
}
