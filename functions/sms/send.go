package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"unicode"

	"svcapi/functions/sms/units"
	"svcapi/functions/sms/vendors"
	"svcapi/shared/admit"
	"svcapi/shared/pattern"
	"svcapi/shared/project"
	"svcapi/shared/request"
	"svcapi/shared/upstream"
	"svcapi/shared/wallet"
)

// sendErrors are the responses to a failed send (docs/decisions/sms.md#vendor-outcomes).
var sendErrors = map[upstream.Class]*request.Error{
	upstream.NotSent: httpError(503, request.ReasonVendorUnreachable,
		"The SMS provider could not be reached. Nothing was sent."),
	upstream.NoResponse: httpError(503, request.ReasonOutcomeUncertain,
		"The SMS provider did not respond. The message may have been sent: do not retry automatically."),
	upstream.Unusable: httpError(502, request.ReasonVendorResponseUnusable,
		"The SMS provider's response was unexpected. The message may have been sent: do not retry automatically."),
	upstream.Rejected: httpError(502, request.ReasonVendorRejected, "The SMS provider rejected the message."),
	upstream.AccountRefused: httpError(502, request.ReasonVendorRejected,
		"The SMS provider refused to send for the account, such as for its balance, its sender or the time of day."),
	upstream.TooFast: httpError(502, request.ReasonVendorRejected,
		"The SMS provider gets too many requests of the account. Nothing was sent: send the message later."),
	upstream.CredentialsRefused: httpError(502, request.ReasonVendorCredentialsRefused,
		"The SMS provider refused the integration's credentials."),
}

var (
	errBulk = &request.Error{Status: 403, Code: request.CodeForbidden, Reason: request.ReasonBulkNeedsManual,
		Message: "Bulk methods need a Manual (BYOK) SMS integration."}
	errTrial = &request.Error{Status: 403, Code: request.CodeForbidden, Reason: request.ReasonTrialDestination,
		Message: "The project is on trial, and a recipient is not among its allowed destinations."}
)

// The values of send_method.
const (
	single        = "single"
	bulkSame      = "bulk_same"
	bulkDifferent = "bulk_different"
)

// sendRequest is the decoded body of POST /sms/send.
type sendRequest struct {
	method     string
	sender     string // of the integration's list; empty: the integration's own sender
	key        string // names the sends of the request at a vendor
	checkCost  bool
	recipients []recipient // in the order of the request
	references vendors.Sealer
	messages   counter // for the limits of the project
}

// counter counts messages before their send, and learns which of them no vendor has sent (admit.Messages).
type counter interface {
	Begin(ctx context.Context, indexes []int)
	MessageErr(index int) error
	End(index int, sent admit.Sent, unsent bool)
}

// recipient is one message of a request with its outcome.
type recipient struct {
	index         int    // in the request
	given         string // the number in the request
	text          string
	unicode       bool
	admit.Message // the normal number and the units, for the limits of the project
	outcome       // undecided until the delivery
}

type sendResult struct {
	Method   string `json:"send_method"`
	Units    int    `json:"message_count"`
	Credits  int64  `json:"credits_charged"`
	Provider any    `json:"provider_response"`
}

// acceptance is provider_response after a send of one message.
type acceptance struct {
	Status    string `json:"status"`
	ID        string `json:"id"`
	Vendor    string `json:"vendor"`
	Reference string `json:"reference,omitzero"`
}

// send returns the operation openapi.yaml#sendSms.
func (g *group) send() request.Route {
	return &request.Operation[sendRequest]{
		Name: "sms_send", Method: "POST", Path: "/api/v1/sms/send", Kind: project.SMS, Price: wallet.SMS,
		Decode:  decodeSend,
		Sends:   func(r sendRequest) bool { return !r.checkCost },
		Prepare: g.prepareSend,
	}
}

var number = request.Text{
	Required: true, Max: 20, Pattern: pattern.New(`^(07\d{8}|\+947\d{8})$`),
	Message: "must be a Sri Lankan mobile number, 07XXXXXXXX or +947XXXXXXXX",
	Explain: func(text string) string {
		if proposal := proposeNumber(text); proposal != "" {
			return "must be 07XXXXXXXX or +947XXXXXXXX; did you mean " + proposal + "?"
		}
		return ""
	},
}

// severalNumbers is the message about a recipient of a single send that has several numbers.
const severalNumbers = "must be one number; for several numbers, use the method bulk_same with recipients"

// oneNumber returns the rule of a single send's recipient.
func oneNumber() request.Text {
	one := number
	one.Max, one.Type = 0, strings.TrimPrefix(severalNumbers, "must be ")
	one.Explain = func(text string) string {
		if len(strings.FieldsFunc(text, isList)) > 1 || severalForms().MatchString(strings.Map(digit, text)) {
			return severalNumbers
		}
		return number.Explain(text)
	}
	return one
}

// isList reports whether a character separates the numbers of a list and never the digits of one number.
func isList(r rune) bool { return strings.ContainsRune(",;|/\n", r) }

// digit drops all characters but those of numbers.
func digit(r rune) rune {
	if r == '+' || '0' <= r && r <= '9' {
		return r
	}
	return -1
}

// severalForms matches the digits of a mobile number and at least one further number, whatever is between them.
var severalForms = pattern.New(`^(?:(?:\+|00)?940?|0)?7\d{8}(?:(?:\+|00)?940?|0)?[1-9]\d{8}`)

// otherForms matches a mobile number in the forms that people and other services write, without the separators.
var otherForms = pattern.New(`^(?:(?:\+|00)?940?|0)?(7\d{8})$`)

// proposeNumber returns the E.164 form of a mobile number in another form, and "" for any other text.
func proposeNumber(text string) string {
	digits := strings.Map(func(r rune) rune {
		if strings.ContainsRune("./()", r) || unicode.IsSpace(r) || unicode.In(r, unicode.Pd, unicode.Cf) {
			return -1
		}
		return r
	}, text)
	if match := otherForms().FindStringSubmatch(digits); match != nil {
		return "+94" + match[1]
	}
	return ""
}

func decodeSend(in *request.Input) (sendRequest, error) {
	in.Knows("to", "message", "recipients", "check_cost", "msg_list") // each method reads some of them
	in.Refuse(refusedFields())
	r := sendRequest{method: in.Text("send_method",
		request.Text{Required: true, OneOf: []string{single, bulkSame, bulkDifferent}})}
	r.sender = in.Text("sender_id", request.Text{Min: 1, Max: 64})
	e := encoder{smart: in.Bool("smart_encoding")}
	message := request.Text{Required: true, Min: 1, Max: 4096}
	switch r.method {
	case single:
		in.Means("to", "recipient", "number")
		to, text := in.Text("to", oneNumber()), e.encode(in.Text("message", message))
		r.add(to, text)
	case bulkSame:
		in.Means("recipients", "numbers")
		text := e.encode(in.Text("message", message))
		for _, to := range in.Texts("recipients", request.List{Required: true, Min: 1, Max: 10_000}, number) {
			r.add(to, text)
		}
		r.checkCost = in.Bool("check_cost")
	case bulkDifferent:
		in.Means("msg_list", "messages")
		in.Objects("msg_list", request.List{Required: true, Min: 1, Max: 20}, func(o request.Object) {
			o.Means("msg", "message")
			to, text := o.Text("to", number), o.Text("msg", request.Text{Required: true, Min: 1})
			r.add(to, e.encode(text))
		})
	}
	r.warn(in, &e)
	return r, nil
}

// add appends one message. An invalid number is not normalised, because its request fails anyway.
func (r *sendRequest) add(to, text string) {
	p := recipient{index: len(r.recipients), given: to, text: text}
	p.To, _ = project.NormalNumber(to)
	if n := len(r.recipients); n > 0 && r.recipients[n-1].text == text {
		p.Units, p.unicode = r.recipients[n-1].Units, r.recipients[n-1].unicode
	} else {
		p.Units, p.unicode = units.Count(text)
	}
	r.recipients = append(r.recipients, p)
}

// permit returns the error of a request that the operation refuses. Bulk and trial come before the length.
func (r *sendRequest) permit(call *request.Call) error {
	if r.method != single && call.Mode == project.Managed {
		return errBulk
	}
	if slices.ContainsFunc(r.recipients, func(p recipient) bool { return !call.Project.TrialAllows(p.To) }) {
		return errTrial
	}
	i := slices.IndexFunc(r.recipients, func(p recipient) bool { return p.Units > units.Most })
	if i < 0 {
		return nil
	}
	place, used := "The message", units.Length(r.recipients[i].text)
	if r.method == bulkDifferent {
		place = fmt.Sprintf("The message of msg_list.%d", i)
	}
	return httpError(422, request.ReasonMessageTooLong,
		fmt.Sprintf("%s has %d characters of at most %d, which are %d SMS units of %d characters (%s).",
			place, used.Characters, units.Most*used.Unit, units.Most, used.Unit, used.Alphabet))
}

func (g *group) prepareSend(ctx context.Context, call *request.Call, r sendRequest) (*request.Job, error) {
	accounts, err := g.accounts(ctx, call)
	if err != nil {
		return nil, err
	}
	if err := r.permit(call); err != nil {
		return nil, err
	}
	if accounts, err = r.from(accounts); err != nil {
		return nil, err
	}
	if r.checkCost {
		return g.estimate(accounts[0], r)
	}
	r.references = vendors.NewSealer(call.Project, call.Environment)
	recipients := r.recipients
	all := make([]admit.Message, len(recipients))
	for i, p := range recipients {
		all[i] = p.Message
	}
	messages := call.Messages(all)
	credits := call.Credits(int(messages.Units()))
	r.messages = messages
	job := &request.Job{Credits: credits, Irrevocable: true, Messages: messages}
	if len(accounts) == 1 && len(recipients) == 1 {
		job.Died = func() wallet.Outcome {
			key := vendors.SendKey(r.references.Scope+string(credits.Key()), 0)
			vendor := accounts[0].Integration.Vendor
			return wallet.Outcome{Vendor: vendor,
				Reference: r.references.Seal(accounts[0], key, "", recipients[0].To, recipients[0].text)}
		}
	}
	job.Run = func(ctx context.Context) (*request.Result, error) {
		r.key = r.references.Scope + cmp.Or(string(credits.Key()), call.RequestID)
		return g.run(ctx, accounts, r, credits.Amount())
	}
	return job, nil
}

// run sends the messages of a request that costs these credits.
func (g *group) run(ctx context.Context, accounts []upstream.Account, r sendRequest,
	credits int64) (*request.Result, error) {
	recipients := r.recipients
	g.deliver(ctx, accounts, r)
	for _, p := range recipients {
		r.messages.End(p.index, admit.Sent{To: p.To, State: string(p.status()), Vendor: p.vendor, VendorID: p.receipt.ID,
			Reference: p.reference}, p.status() == rejected || p.status() == notAttempted)
	}
	if err := failure(recipients); err != nil {
		return nil, err
	}
	data := sendResult{Method: r.method, Units: acceptedUnits(recipients), Credits: credits}
	first := recipients[firstAccepted(recipients)]
	result := &request.Result{
		Vendor: first.vendor, VendorID: first.receipt.ID, Attributes: summary(data.Units, recipients),
		Cause: cause(recipients),
	}
	if r.method == single {
		data.Provider = acceptance{first.receipt.Status, first.receipt.ID, first.vendor, first.reference}
	} else {
		bulk := bulkAcceptance(recipients)
		data.Provider = bulk
		result.Reduced = func() any {
			data.Provider = bulk.withoutReferences()
			return data
		}
	}
	result.Data = data
	return result, nil
}

// acceptedUnits returns the units of the accepted messages. The messages of a call with removed recipients have one
// text.
func acceptedUnits(recipients []recipient) (sum int) {
	for _, p := range recipients {
		if p.status() == accepted {
			sum += p.Units * (1 - p.receipt.Removed.Sum())
		}
	}
	return sum
}

// errUndecided reports a delivery that has left a recipient without an outcome. Such a request is not charged.
var errUndecided = errors.New("a recipient is undecided after the delivery")

// failure returns the error of a request without an accepted message: the error of the decisive outcome.
func failure(recipients []recipient) error {
	switch {
	case slices.ContainsFunc(recipients, func(p recipient) bool { return p.status() == undecided }):
		return request.ErrInternal.WithCause(errUndecided)
	case firstAccepted(recipients) >= 0:
		return nil
	}
	o := decisive(recipients)
	e := vendorError(sendErrors, o.vendor, o.err)
	e.Cause = cause(recipients)
	e.Uncertain, e.Reference = o.status() == uncertain, o.reference
	e.Reached = slices.ContainsFunc(recipients,
		func(p recipient) bool { return upstream.ClassOf(p.err) != upstream.NotSent })
	return e
}

// decisive returns the first uncertain outcome, else the first that is not accepted, else the zero outcome. A recipient
// who must not be sent to has no part in it, because no vendor was asked.
func decisive(recipients []recipient) outcome {
	i := slices.IndexFunc(recipients, func(p recipient) bool { return p.status() == uncertain })
	if i < 0 {
		i = slices.IndexFunc(recipients, func(p recipient) bool { return p.status() != accepted && !p.excluded() })
	}
	if i < 0 {
		return outcome{}
	}
	return recipients[i].outcome
}

// cause returns the error for the operator: the decisive error, the first panic, the first failed count and the first
// refusal of an earlier account, or nil where the first account has accepted all messages.
func cause(recipients []recipient) error {
	decided := decisive(recipients).err
	var panicked, uncounted, passed error
	for _, p := range recipients {
		if panicked == nil && errors.Is(p.err, request.ErrPanicked) && !errors.Is(decided, request.ErrPanicked) {
			panicked = p.err
		}
		if errors.Is(p.err, errUncounted) {
			uncounted = cmp.Or(uncounted, p.err)
		}
		passed = cmp.Or(passed, p.passed)
	}
	return errors.Join(decided, panicked, uncounted, passed)
}

func firstAccepted(recipients []recipient) int {
	return slices.IndexFunc(recipients, func(p recipient) bool { return p.status() == accepted })
}

// bulkResult is the item of provider_response for one recipient.
type bulkResult struct {
	To     string `json:"to"` // the number in the request
	Status status `json:"status"`
	ID     string `json:"id"`
	Vendor string `json:"vendor"`
	Units  int    `json:"units"`
	Reason string `json:"reason,omitzero"`

	Reference string `json:"reference,omitzero"` // of the call that had the recipient
}

const (
	// recipientLimit is the reason of a message that was not attempted because of the limit of messages to its number.
	recipientLimit = "recipient_limit"
	// removed counts the recipients whom vendors have removed from accepted calls.
	removed = "removed"
)

// bulkCounts holds the number of recipients by status.
type bulkCounts struct {
	Accepted     int `json:"accepted"`
	Rejected     int `json:"rejected"`
	Uncertain    int `json:"uncertain"`
	NotAttempted int `json:"not_attempted"`
	Removed      int `json:"removed,omitzero"` // by the vendor, which does not name them: their results are accepted
}

// reducedBatch is an accepted call from which the vendor has removed recipients.
type reducedBatch struct {
	ID         string `json:"id"`
	Vendor     string `json:"vendor"`
	Reference  string `json:"reference"`
	Recipients int    `json:"recipients"` // before the removal
	vendors.Removed
}

// bulkResponse is provider_response after a bulk send.
type bulkResponse struct {
	acceptance
	Counts  *bulkCounts    `json:"counts,omitzero"` // of a partial acceptance
	Batches []reducedBatch `json:"batches,omitzero"`
	Results []bulkResult   `json:"results"`
}

// bulkAcceptance returns the outcomes of all recipients. The status is accepted or partial. The ID and
// the reference are those of the call where one call had all recipients, and else empty.
func bulkAcceptance(recipients []recipient) bulkResponse {
	first := recipients[firstAccepted(recipients)]
	response := bulkResponse{acceptance: acceptance{"accepted", first.receipt.ID, first.vendor, first.reference}}
	if counts := countByStatus(recipients); counts[accepted] < len(recipients) {
		response.Status = "partial"
		response.Counts = &bulkCounts{counts[accepted], counts[rejected], counts[uncertain],
			counts[notAttempted], counts[removed]}
	}
	for _, p := range recipients {
		if p.receipt.ID != first.receipt.ID {
			response.ID = ""
		}
		if p.reference != first.reference {
			response.Reference = ""
		}
		result := bulkResult{To: p.given, Status: p.status(), ID: p.receipt.ID, Vendor: p.vendor, Units: p.Units,
			Reference: p.reference}
		if errors.Is(p.err, errLimited) {
			result.Reason = recipientLimit
		}
		if r := p.receipt.Removed; r.Sum() > 0 {
			response.Batches = append(response.Batches, reducedBatch{p.receipt.ID, p.vendor, p.reference, p.size, r})
		}
		response.Results = append(response.Results, result)
	}
	return response
}

// withoutReferences returns a copy whose results have no references, which do not compress.
func (b bulkResponse) withoutReferences() bulkResponse {
	b.Results = slices.Clone(b.Results)
	for i := range b.Results {
		b.Results[i].Reference = ""
	}
	return b
}

func countByStatus(recipients []recipient) map[status]int {
	counts := map[status]int{}
	for _, p := range recipients {
		counts[p.status()]++
		counts[accepted] -= p.receipt.Removed.Sum()
		counts[removed] += p.receipt.Removed.Sum()
		if errors.Is(p.err, errLimited) {
			counts[recipientLimit]++
		}
	}
	return counts
}

// summary returns the number of recipients by their outcome, for the log.
func summary(units int, recipients []recipient) []slog.Attr {
	counts := countByStatus(recipients)
	attributes := []slog.Attr{slog.Int("units", units)}
	for _, s := range []status{accepted, rejected, uncertain, notAttempted, removed, recipientLimit} {
		if n := counts[s]; n > 0 {
			attributes = append(attributes, slog.Int(string(s), n))
		}
	}
	return attributes
}
