package vendors

import (
	"cmp"
	"context"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"svcapi/shared/upstream"
)

// ultimateSMS is the API v3 of Ultimate SMS, the software of several gateways (text.lk/docs/send-sms; clients of
// dashboard.smsapi.lk and other installations). Each gateway has its own endpoint.
func ultimateSMS() Vendor {
	return ultimateVendor("", upstream.Spec{
		Name: "ultimatesms", Title: "Ultimate SMS (gateway of your choice)",
		Settings: []upstream.Field{senderID, unitPrice, {
			Name: upstream.EndpointSetting, Description: "URL of the gateway's API, https, such as https://app.gateway.example/api/v3", Required: true,
		}},
	})
}

// ultimateVendor returns an installation, whose API has a path below the endpoint.
func ultimateVendor(path string, spec upstream.Spec) Vendor {
	spec.Secrets = []upstream.Field{{Name: "api_token", Description: "API token of the account", Required: true}}
	return Vendor{
		Spec: spec, Concurrency: unpublished, Batch: 100,
		New: func(c *upstream.Client, a upstream.Account) Adapter {
			return &ultimateAdapter{caller{spec.Name, c, a}, a.Endpoint + path}
		},
	}
}

type ultimateAdapter struct {
	caller
	base string // URL of the API
}

type ultimateSend struct {
	Recipient string `json:"recipient"`
	SenderID  string `json:"sender_id"`
	Type      string `json:"type"`
	Message   string `json:"message"`
}

// read returns the data of a successful response to a call.
func (a *ultimateAdapter) read(response *upstream.Response, err error) (map[string]jsontext.Value, error) {
	if err != nil {
		return nil, err
	}
	if err := a.byWords(response); err != nil {
		return nil, err
	}
	values, status := members(response.Body)
	switch status {
	case "success":
		data, _ := members(values["data"]) // the vendor does not document the fields: each may be missing
		return data, nil
	case "error":
		return nil, a.byText(text(values["message"]))
	}
	return nil, a.fail(upstream.Unusable, string(response.Body))
}

// Send implements Adapter.
func (a *ultimateAdapter) Send(ctx context.Context, m Message) (Receipt, error) {
	return a.SendSame(ctx, []string{m.To}, m)
}

// SendSame implements SameSender.
func (a *ultimateAdapter) SendSame(ctx context.Context, to []string, m Message) (Receipt, error) {
	kind := "plain"
	if m.Unicode {
		kind = "unicode"
	}
	body := ultimateSend{strings.Join(each(to, international), ","), a.account.Settings["sender_id"], kind, m.Text}
	header := http.Header{"Accept": {"application/json"}}
	data, err := a.read(a.postJSON(ctx, a.base+"/sms/send", a.account.Secrets["api_token"], header, body, true))
	if err != nil {
		return Receipt{}, err
	}
	return Receipt{Status: cmp.Or(text(data["status"]), "success"), ID: text(data["uid"])}, nil
}

// Balance implements Balancer.
func (a *ultimateAdapter) Balance(ctx context.Context) (string, error) {
	data, err := a.read(a.do(ctx, &upstream.Request{Method: http.MethodGet, URL: a.base + "/balance", Header: http.Header{
		"Authorization": {"Bearer " + a.account.Secrets["api_token"]},
		"Content-Type":  {"application/json"}, "Accept": {"application/json"},
	}}))
	if err != nil {
		return "", err
	}
	balance := text(data["remaining_balance"])
	if balance == "" {
		return "", a.fail(upstream.Unusable, "response without remaining_balance")
	}
	return balance, nil
}
