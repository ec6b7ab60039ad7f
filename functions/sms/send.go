package main

import (
	"context"
	"errors"
	"log/slog"
	"regexp"
	"slices"

	"svcapi/functions/sms/units"
	"svcapi/functions/sms/vendors"
	"svcapi/shared/api"
	"svcapi/shared/credit"
	"svcapi/shared/project"
	"svcapi/shared/upstream"
)

// sendErrors are the answers to a failed send (contract: SMS send, rule 10).
var sendErrors = map[upstream.Class]*api.Error{
	upstream.NotSent:            httpError(503, "The SMS provider could not be reached. Nothing was sent."),
	upstream.NoAnswer:           httpError(503, "The SMS provider did not answer. The message may have been sent: do not retry automatically."),
	upstream.Unusable:           httpError(502, "The SMS provider's answer was unexpected. The message may have been sent: do not retry automatically."),
	upstream.Rejected:           httpError(502, "The SMS provider rejected the message."),
	upstream.CredentialsRefused: httpError(502, "The SMS provider refused the integration's credentials."),
}

var (
	errTooLong = httpError(422, "A message is over 3 SMS units (153 characters each, 67 with Unicode).")
	errBulk    = &api.Error{Status: 403, Code: api.CodeForbidden, Message: "Bulk methods need a Manual (BYOK) SMS integration."}
	errTrial   = &api.Error{Status: 403, Code: api.CodeForbidden, Message: "The project is on trial, and a recipient is not among its allowed destinations."}
)

// The values of send_method.
const (
	single        = "single"
	bulkSame      = "bulk_same"
	bulkDifferent = "bulk_different"
)

// sendRequest is the decoded body of POST /sms/send.
type sendRequest struct {
	method    string
	checkCost bool
	given     []string          // recipients as given
	messages  []vendors.Message // one per recipient, in the order given
	units     []int             // of each message
}

type sendResult struct {
	Method   string `json:"send_method"`
	Units    int    `json:"message_count"`
	Credits  int64  `json:"credits_charged"`
	Provider any    `json:"provider_response"`
}

// acceptance is provider_response after a send of one message.
type acceptance struct {
	Status string `json:"status"`
	ID     string `json:"id"`
	Vendor string `json:"vendor"`
}

// send is POST /sms/send.
func (g *group) send() api.Route {
	return &api.Operation[sendRequest]{
		Name: "sms_send", Method: "POST", Path: "/api/v1/sms/send", Kind: project.SMS, Price: credit.SMS,
		Decode:  decodeSend,
		Sends:   func(r sendRequest) bool { return !r.checkCost },
		Prepare: g.prepareSend,
	}
}

var number = api.Text{
	Required: true, Max: 20, Pattern: regexp.MustCompile(`^(07\d{8}|\+947\d{8})$`), Message: "must be 07XXXXXXXX or +947XXXXXXXX",
}

func decodeSend(in *api.Input) (sendRequest, error) {
	r := sendRequest{method: in.Text("send_method", api.Text{Required: true, OneOf: []string{single, bulkSame, bulkDifferent}})}
	message := api.Text{Required: true, Min: 1, Max: 4096}
	switch r.method {
	case single:
		to, text := in.Text("to", number), in.Text("message", message)
		r.add(to, text)
	case bulkSame:
		text := in.Text("message", message)
		for _, to := range in.Texts("recipients", api.List{Required: true, Min: 1, Max: 10_000}, number) {
			r.add(to, text)
		}
		r.checkCost = in.Bool("check_cost")
	case bulkDifferent:
		in.Objects("msg_list", api.List{Required: true, Min: 1, Max: 20}, func(o api.Object) {
			to, text := o.Text("to", number), o.Text("msg", api.Text{Required: true, Min: 1})
			r.add(to, text)
		})
	}
	return r, nil
}

// add notes one message; to is not normal where it is not valid, and then the
// request is refused.
func (r *sendRequest) add(to, text string) {
	normal, _ := project.NormalNumber(to)
	var count int
	var unicode bool
	if n := len(r.messages); n > 0 && r.messages[n-1].Text == text {
		count, unicode = r.units[n-1], r.messages[n-1].Unicode
	} else {
		count, unicode = units.Count(text)
	}
	r.given = append(r.given, to)
	r.messages = append(r.messages, vendors.Message{To: normal, Text: text, Unicode: unicode})
	r.units = append(r.units, count)
}

// refusal is what the operation itself says no to, the forbidden first.
func (r *sendRequest) refusal(call *api.Call) error {
	if r.method != single && call.Mode == project.Managed {
		return errBulk
	}
	for _, m := range r.messages {
		if !call.Project.TrialAllows(m.To) {
			return errTrial
		}
	}
	for _, n := range r.units {
		if n > units.Most {
			return errTooLong
		}
	}
	return nil
}

func (g *group) prepareSend(ctx context.Context, call *api.Call, r sendRequest) (*api.Job, error) {
	accounts, err := g.accounts(ctx, call)
	if err != nil {
		return nil, err
	}
	if err := r.refusal(call); err != nil {
		return nil, err
	}
	if r.checkCost {
		return g.estimate(accounts[0], r)
	}
	credits := call.Credits(r.total(nil))
	return &api.Job{
		Credits: credits, Irrevocable: true,
		Run: func(ctx context.Context) (*api.Result, error) {
			outcomes := g.deliver(ctx, accounts, r)
			if err := failure(outcomes); err != nil {
				return nil, err
			}
			result := sendResult{Method: r.method, Units: r.total(outcomes), Credits: credits}
			first := outcomes[firstAccepted(outcomes)]
			if r.method == single {
				result.Provider = acceptance{first.receipt.Status, first.receipt.ID, first.vendor}
			} else {
				result.Provider = r.bulkAcceptance(outcomes)
			}
			return &api.Result{
				Data: result, Vendor: first.vendor, Attributes: summary(result.Units, outcomes), Cause: cause(outcomes),
			}, nil
		},
	}, nil
}

// total is the units of the messages, of the accepted ones where outcomes are known.
func (r *sendRequest) total(outcomes []outcome) int {
	sum := 0
	for i, n := range r.units {
		if outcomes == nil || outcomes[i].status() == accepted {
			sum += n
		}
	}
	return sum
}

// failure is the error of a request of which nothing was accepted: that of the
// first uncertain recipient, else of the first one.
func failure(outcomes []outcome) error {
	if firstAccepted(outcomes) >= 0 {
		return nil
	}
	o := decisive(outcomes)
	e := vendorError(sendErrors, o.vendor, o.err)
	e.Cause = cause(outcomes)
	e.Uncertain = o.status() == uncertain
	e.Reached = slices.ContainsFunc(outcomes, func(o outcome) bool { return upstream.ClassOf(o.err) != upstream.NotSent })
	return e
}

// decisive returns the outcome that speaks for the messages that were not
// accepted: the first uncertain one, else the first. It is the zero outcome
// where all were accepted.
func decisive(outcomes []outcome) outcome {
	for _, speaks := range []func(outcome) bool{
		func(o outcome) bool { return o.status() == uncertain },
		func(o outcome) bool { return o.status() != accepted },
	} {
		if i := slices.IndexFunc(outcomes, speaks); i >= 0 {
			return outcomes[i]
		}
	}
	return outcome{}
}

// cause is for the operator: the decisive error, and the first panic where that
// error is none. It is nil where all messages were accepted.
func cause(outcomes []outcome) error {
	err := decisive(outcomes).err
	panicked := func(o outcome) bool { return errors.Is(o.err, errPanicked) }
	if i := slices.IndexFunc(outcomes, panicked); i >= 0 && !errors.Is(err, errPanicked) {
		err = errors.Join(err, outcomes[i].err)
	}
	return err
}

func firstAccepted(outcomes []outcome) int {
	return slices.IndexFunc(outcomes, func(o outcome) bool { return o.status() == accepted })
}

// bulkResult is one recipient's part of provider_response.
type bulkResult struct {
	To     string `json:"to"` // as in the request
	Status status `json:"status"`
	ID     string `json:"id"`
	Vendor string `json:"vendor"`
	Units  int    `json:"units"`
}

// bulkResponse is provider_response after a bulk send.
type bulkResponse struct {
	acceptance
	Results []bulkResult `json:"results"`
}

// bulkAcceptance tells every recipient's outcome. The status is accepted, or
// partial; the ID is the vendor's where one call took all recipients.
func (r *sendRequest) bulkAcceptance(outcomes []outcome) bulkResponse {
	first := outcomes[firstAccepted(outcomes)]
	response := bulkResponse{acceptance: acceptance{"accepted", first.receipt.ID, first.vendor}}
	for i, o := range outcomes {
		if o.status() != accepted {
			response.Status = "partial"
		}
		if o.receipt.ID != first.receipt.ID {
			response.ID = ""
		}
		response.Results = append(response.Results, bulkResult{r.given[i], o.status(), o.receipt.ID, o.vendor, r.units[i]})
	}
	return response
}

// summary counts recipients by their outcome, for the log.
func summary(units int, outcomes []outcome) []slog.Attr {
	counts := map[status]int{}
	for _, o := range outcomes {
		counts[o.status()]++
	}
	attributes := []slog.Attr{slog.Int("units", units)}
	for _, s := range []status{accepted, rejected, uncertain, notAttempted} {
		if n := counts[s]; n > 0 {
			attributes = append(attributes, slog.Int(string(s), n))
		}
	}
	return attributes
}
