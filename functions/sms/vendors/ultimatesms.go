package vendors

import (
	"cmp"
	"context"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"svcapi/shared/upstream"
)

// ultimateToken is the secret of every installation of Ultimate SMS.
var ultimateToken = upstream.Field{Name: "api_token", Description: "API token of the account", Required: true}

// ultimateSMS is the API v3 of Ultimate SMS, the software of several gateways (text.lk/docs/send-sms; clients of
// dashboard.smsapi.lk and other installations). Each gateway has its own endpoint.
func ultimateSMS() Vendor {
	return Vendor{
		Spec: upstream.Spec{
			Name: "ultimatesms", Title: "Ultimate SMS (gateway of your choice)",
			Settings: []upstream.Field{senderID, unitPrice, {
				Name: upstream.EndpointSetting, Description: "URL of the gateway's API, https, such as https://app.gateway.example/api/v3", Required: true,
			}},
			Secrets: []upstream.Field{ultimateToken},
		},
		Concurrency: unpublished, Batch: 100,
		New: func(c *upstream.Client, a upstream.Account) Adapter {
			return &ultimateAdapter{caller{"ultimatesms", c, a}, a.Endpoint}
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

// call returns the data of a successful response.
func (a *ultimateAdapter) call(ctx context.Context, method, path string, body []byte, send bool) (map[string]jsontext.Value, error) {
	response, err := a.do(ctx, &upstream.Request{
		Method: method, URL: a.base + "/" + path, Body: body, Send: send,
		Header: http.Header{
			"Authorization": {"Bearer " + a.account.Secrets["api_token"]},
			"Content-Type":  {"application/json"}, "Accept": {"application/json"},
		},
	})
	if err != nil {
		return nil, err
	}
	if err := a.byStatus(response); err != nil {
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
	return a.SendSame(ctx, []string{m.To}, m.Text, m.Unicode)
}

// SendSame implements SameSender.
func (a *ultimateAdapter) SendSame(ctx context.Context, to []string, message string, unicode bool) (Receipt, error) {
	kind := "plain"
	if unicode {
		kind = "unicode"
	}
	body, err := json.Marshal(ultimateSend{strings.Join(each(to, international), ","), a.account.Settings["sender_id"], kind, message})
	if err != nil {
		return Receipt{}, a.fail(upstream.NotSent, err.Error())
	}
	data, err := a.call(ctx, http.MethodPost, "sms/send", body, true)
	if err != nil {
		return Receipt{}, err
	}
	return Receipt{Status: cmp.Or(text(data["status"]), "success"), ID: text(data["uid"])}, nil
}

// Balance implements Balancer.
func (a *ultimateAdapter) Balance(ctx context.Context) (string, error) {
	data, err := a.call(ctx, http.MethodGet, "balance", nil, false)
	if err != nil {
		return "", err
	}
	balance := text(data["remaining_balance"])
	if balance == "" {
		return "", a.fail(upstream.Unusable, "response without remaining_balance")
	}
	return balance, nil
}
