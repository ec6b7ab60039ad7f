package request

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"svcapi/shared/admit"
	"svcapi/shared/pattern"
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
	elapsed := s.Stores.Now().Sub(state.started)
	vendor, level := state.vendor, slog.LevelInfo
	attributes := []slog.Attr{
		slog.String("request_id", state.id), slog.String("extended_request_id", gatewayOf(ctx).ExtendedRequestID),
		slog.Int("status", resp.status), slog.String("method", state.request.Method),
		slog.Int("response_bytes", resp.size()), s.Stores.Log.Source(state.request.RemoteAddr),
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
	s.Stores.Log.Emit(ctx, telemetry.Event{
		Level: level, Message: "request",
		Dimensions: []telemetry.Dimension{{Name: "operation", Value: cmp.Or(state.operation, "none")},
			{Name: "outcome", Value: resp.outcome()}, {Name: "vendor", Value: vendor}},
		Metrics:    append(metrics, state.metrics...),
		Attributes: append(attributes, state.attributes...),
	})
}

// loggedSends is the number of messages of a send whose outcomes are in its log line. Of the others the line has the
// hashes of their numbers, 190 KB at most, because CloudWatch takes 256 KB of a line.
const loggedSends = 20

// sends returns the attributes of the messages of a send, by which "svc sms find" and "svc sms status" find the send
// (docs/decisions/operating.md#logged-sends). A send with privacy has none.
func (s *Service) sends(state *requestState) []slog.Attr {
	if state.privacy || state.job == nil || state.job.Messages == nil {
		return nil
	}
	var sends []admit.Sent
	var further []string
	for i, m := range state.job.Messages.Sent() {
		if s.cfg.LogPayloads == payloadsOn {
			m.Number = m.To
		}
		if m.To = state.record.LoggedNumber(m.To); s.cfg.LogPayloads == payloadsOff {
			m.To = ""
		}
		if i >= loggedSends {
			further = append(further, m.To)
			continue
		}
		sends = append(sends, m)
	}
	if len(sends) == 0 {
		return nil
	}
	attributes := []slog.Attr{slog.Any("sends", sends)}
	if len(further) > 0 {
		attributes = append(attributes, slog.Int("further_sends", len(further)))
		if further[0] != "" {
			attributes = append(attributes, slog.Any("further_to", further))
		}
	}
	return attributes
}

// The values of LOG_PAYLOADS (docs/decisions/requests.md#payload-logging).
const (
	payloadsOn     = "on"
	payloadsOff    = "off"
	payloadsMasked = "masked"
)

// payload returns what the log holds of a decoded request's body, without half a character at its end; empty: nothing.
func (c Config) payload(body []byte) string {
	if c.LogPayloads == payloadsOff {
		return ""
	}
	text := body
	if c.LogPayloads != payloadsOn || hasPassword(body) { // in whatever spelling JSON has for the name of the field
		text = []byte(maskPayload(body))
	}
	return strings.ToValidUTF8(string(text[:min(len(text), maxPayload)]), "")
}

// hasPassword reports whether a field may have the name password. Only a name with escapes needs the parser.
func hasPassword(body []byte) bool {
	if plain := bytes.Contains(body, []byte("password")); plain || !bytes.Contains(body, []byte(`\u00`)) {
		return plain
	}
	d := jsontext.NewDecoder(bytes.NewReader(body))
	for {
		token, err := d.ReadToken()
		if err != nil {
			return !errors.Is(err, io.EOF) // the body has been parsed once
		}
		kind, length := d.StackIndex(d.StackDepth())
		if kind == '{' && length%2 == 1 && token.Kind() == '"' && token.String() == "password" {
			return true
		}
	}
}

// errorText returns what the log holds of an error's text, which may quote a part of the payload.
func (c Config) errorText(text, quoted string) string {
	if c.LogPayloads == payloadsOn {
		return text
	}
	if quoted != "" {
		text = strings.ReplaceAll(text, quoted, "("+mask(quoted)+")")
	}
	return phoneNumbers().ReplaceAllStringFunc(text, mask)
}

const (
	// keptDigits is the number of a phone number's last digits that a masked payload shows.
	keptDigits = 3
	// longestName and longestDigits are those of a field's name and of a number that a masked payload shows.
	longestName   = 32
	longestDigits = 6
)

var (
	// phoneNumbers are the numbers of openapi.yaml#PhoneNumber, in a vendor's spelling, too.
	phoneNumbers = pattern.New(`\b(?:94|0)?7\d{8}\b`)
	phoneNumber  = pattern.New(`^\+?\d{7,19}$`)
	choice       = pattern.New(`^[A-Za-z][A-Za-z0-9_+-]{0,31}$`)
	colour       = pattern.New(`^#?[0-9A-Fa-f]{3,8}$`)
	// shown are the fields whose texts are choices of the contract, and no data of a person.
	shown = map[string][]func() *regexp.Regexp{
		"send_method": {choice}, "type": {choice}, "format": {choice}, "error_correction": {choice}, "page_size": {choice},
		"orientation": {choice}, "response_type": {choice}, "provider": {choice},
		"color": {choice, colour}, "background": {choice, colour},
	}
)

// maskPayload returns a JSON object whose texts are reduced to their lengths, and whose phone numbers are reduced to
// their lengths and last digits. Names, booleans, short numbers and the choices of the contract stay.
func maskPayload(body []byte) string {
	var out bytes.Buffer
	d := jsontext.NewDecoder(bytes.NewReader(body))
	e := jsontext.NewEncoder(&out, jsontext.AllowDuplicateNames(true))
	name := ""
	for out.Len() <= maxPayload {
		token, err := d.ReadToken()
		if err != nil { // the end: the body has been parsed once
			break
		}
		kind, length := d.StackIndex(d.StackDepth())
		isName := kind == '{' && length%2 == 1
		switch token.Kind() {
		case '"':
			text := token.String()
			switch {
			case isName:
				name = text
				if len(text) > longestName || phoneNumber().MatchString(text) {
					text = mask(text)
				}
			case kind != '{' || !slices.ContainsFunc(shown[name],
				func(r func() *regexp.Regexp) bool { return r().MatchString(text) }):
				text = mask(text)
			}
			token = jsontext.String(text)
		case '0':
			if text := token.String(); len(text) > longestDigits {
				token = jsontext.String(mask(text))
			}
		}
		if err := e.WriteToken(token); err != nil {
			break
		}
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// mask returns the length of a text, and the last digits of a phone number.
func mask(text string) string {
	if phoneNumber().MatchString(text) {
		return fmt.Sprintf("%d digits, the last %s", len(strings.TrimPrefix(text, "+")), text[len(text)-keptDigits:])
	}
	return fmt.Sprintf("%d characters", utf8.RuneCountInString(text))
}
