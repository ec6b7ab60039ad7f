package vendors

import (
	"cmp"
	"context"
	"net/url"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"svcapi/shared/upstream"
)

// ultimateSMS is the API v3 of Ultimate SMS, the software of several gateways (text.lk/docs/send-sms; clients of
// dashboard.smsapi.lk and other installations). Each gateway has its own endpoint.
func ultimateSMS() Vendor {
	return ultimateVendor("", upstream.Spec{
		Name: "ultimatesms", Title: "Ultimate SMS (gateway of your choice)",
		Settings: []upstream.Field{
			senderID,
			required(upstream.EndpointSetting, "URL of the gateway's API, https, such as https://app.gateway.example/api/v3"),
		},
	})
}

// textLK is Text.lk's API v3 (text.lk/docs), an installation of Ultimate SMS.
func textLK() Vendor {
	return ultimateVendor("/api/v3", upstream.Spec{
		Name: "textlk", Title: "Text.lk", Endpoint: "https://app.text.lk", Settings: []upstream.Field{senderID},
	})
}

// ultimateVendor returns an installation, whose API has a path below the endpoint.
func ultimateVendor(path string, spec upstream.Spec) Vendor {
	spec.Secrets = []upstream.Field{required("api_token", "API token of the account")}
	return Vendor{
		Spec: spec, Concurrency: unpublished, Batch: 100,
		New: func(c *upstream.Client, a upstream.Account) Adapter {
			a.Endpoint += path
			return &ultimateAdapter{caller{c, a}}
		},
	}
}

type ultimateAdapter struct{ caller }

// request makes a call to a path with a body, or without one.
func (a *ultimateAdapter) request(ctx context.Context, path string, body any, send bool) (*upstream.Response, error) {
	header := bearer(a.Secrets["api_token"])
	header["Accept"], header["Content-Type"] = []string{"application/json"}, []string{"application/json"}
	return a.call(ctx, a.Endpoint+path, header, body, send)
}

// ultimateWords are the values of "status" that the vendor documents.
var ultimateWords = map[string]bool{"status success": true, "status error": false}

// data returns the data of a successful response. The vendor does not document the fields: each may be missing.
func (a *ultimateAdapter) data(response *upstream.Response, err error) (map[string]jsontext.Value, error) {
	values, err := a.read(ultimateWords, response, err)
	data, _ := members(values["data"])
	return data, err
}

// Send implements Adapter.
func (a *ultimateAdapter) Send(ctx context.Context, m Message) (Receipt, error) {
	kind := "plain"
	if m.Unicode {
		kind = "unicode"
	}
	data, err := a.data(a.request(ctx, "/sms/send", map[string]string{
		"recipient": strings.Join(each(m.To, international),
			","), "sender_id": a.Settings["sender_id"], "type": kind, "message": m.Text,
	}, true))
	if err != nil {
		return Receipt{}, err
	}
	return Receipt{Status: cmp.Or(text(data["status"]), "success"), ID: text(data["uid"])}, nil
}

// ultimateStates are the states of a message in lower case (clients of several installations).
var ultimateStates = map[string]State{
	"accepted": StateAccepted, "queued": StateAccepted, "pending": StateAccepted, "enroute": StateSent, "sent": StateSent,
	"delivered": StateDelivered, "undelivered": StateFailed, "failed": StateFailed, "rejected": StateFailed,
	"expired": StateFailed,
}

// CheckStatus implements StatusChecker. The vendor finds a message by its ID alone.
func (a *ultimateAdapter) CheckStatus(ctx context.Context, s PastSend) (Status, error) {
	if s.ID == "" {
		return Status{State: StateUnknown, Reason: ReasonIDUnknown}, nil
	}
	response, err := a.request(ctx, "/sms/"+url.PathEscape(s.ID), nil, false)
	if err == nil {
		values, status := members(response.Body)
		if status == "error" && strings.Contains(strings.ToLower(text(values["message"])), "not found") {
			return Status{State: StateNotFound}, nil
		}
	}
	data, err := a.data(response, err)
	return a.status(ultimateStates, text(data["status"]), err)
}

// Balance implements Balancer.
func (a *ultimateAdapter) Balance(ctx context.Context) (string, error) {
	data, err := a.data(a.request(ctx, "/balance", nil, false))
	balance := text(data["remaining_balance"])
	if err == nil && balance == "" {
		err = a.fail(upstream.Unusable, "response without remaining_balance")
	}
	return balance, err
}
