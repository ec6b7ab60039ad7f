package main

import (
	"context"
	"log/slog"
	"regexp"

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
	Required: true, Max: 20, Form: regexp.MustCompile(`^(07\d{8}|\+947\d{8})$`), Says: "must be 07XXXXXXXX or +947XXXXXXXX",
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
	count, unicode := 0, false
	if n := len(r.messages); n > 0 && r.messages[n-1].Text == text {
		count, unicode = r.units[n-1], r.messages[n-1].Unicode
	} else {
		count, unicode = units(text)
	}
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
		if n > maxUnits {
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
	credits := call.Credits(r.units[0])
	return &api.Job{
		Credits: credits, Irrevocable: true,
		Run: func(ctx context.Context) (*api.Result, error) {
			receipt, vendor, err := g.sendOne(ctx, accounts, r.messages[0])
			if err != nil {
				e := vendorError(sendErrors, vendor, err)
				e.Uncertain = upstream.ClassOf(err).Uncertain()
				return nil, e
			}
			return &api.Result{
				Data:   sendResult{r.method, r.units[0], credits, acceptance{receipt.Status, receipt.ID, vendor}},
				Vendor: vendor, Attributes: []slog.Attr{slog.Int("units", r.units[0])},
			}, nil
		},
	}, nil
}

// sendOne goes along the chain of accounts. The next one is tried only after a
// certain failure to connect, never once a vendor may have the message.
func (g *group) sendOne(ctx context.Context, accounts []upstream.Account, m vendors.Message) (receipt vendors.Receipt, vendor string, err error) {
	for _, account := range accounts {
		vendor = account.Integration.Vendor
		receipt, err = upstream.WithFresh(ctx, g.secrets, account, func(a upstream.Account) (vendors.Receipt, error) {
			return g.adapter(a).Send(ctx, m)
		})
		if err == nil || upstream.ClassOf(err) != upstream.NotSent {
			return receipt, vendor, err
		}
	}
	return receipt, vendor, err
}
