package vendors

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"svcapi/shared/upstream"
)

// notifyLK is Notify.lk's API v1: one recipient a call, no message ID, no documented form of errors.
func notifyLK() Vendor {
	return Vendor{
		Spec: upstream.Spec{
			Name: "notifylk", Title: "Notify.lk", Endpoint: "https://app.notify.lk",
			Settings: []upstream.Field{senderID, unitPrice},
			Secrets: []upstream.Field{
				{Name: "user_id", Description: "user ID of the account", Required: true},
				{Name: "api_key", Description: "API key of the account", Required: true},
			},
		},
		Concurrency: unpublished,
		New:         func(c *upstream.Client, a upstream.Account) Adapter { return &notifyAdapter{caller{"notifylk", c, a}} },
	}
}

type notifyAdapter struct{ caller }

func (a *notifyAdapter) credentials() url.Values {
	return url.Values{"user_id": {a.account.Secrets["user_id"]}, "api_key": {a.account.Secrets["api_key"]}}
}

// read returns the data of a successful response to a call.
func (a *notifyAdapter) read(response *upstream.Response, err error) (jsontext.Value, error) {
	if err != nil {
		return nil, err
	}
	if err := a.byWords(response); err != nil {
		return nil, err
	}
	values, status := members(response.Body)
	switch strings.ToLower(status) {
	case "success":
		return values["data"], nil
	case "error", "failed": // known from clients; the vendor documents no refusal
		return nil, a.byText(strings.Join([]string{text(values["message"]), text(values["data"]), text(values["error"])}, " "))
	}
	return nil, a.fail(upstream.Unusable, string(response.Body))
}

// Send implements Adapter. Send posts a form, so that the key is not in the URL.
func (a *notifyAdapter) Send(ctx context.Context, m Message) (Receipt, error) {
	form := a.credentials()
	form.Set("sender_id", a.account.Settings["sender_id"])
	form.Set("to", international(m.To))
	form.Set("message", m.Text)
	if m.Unicode {
		form.Set("type", "unicode")
	}
	data, err := a.read(a.do(ctx, &upstream.Request{
		Method: http.MethodPost, URL: a.account.Endpoint + "/api/v1/send", Send: true,
		Header: http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}, Body: []byte(form.Encode()),
	}))
	if err != nil {
		return Receipt{}, err
	}
	return Receipt{Status: cmp.Or(text(data), "success")}, nil
}

// Balance implements Balancer.
func (a *notifyAdapter) Balance(ctx context.Context) (string, error) {
	url := a.account.Endpoint + "/api/v1/status?" + a.credentials().Encode()
	data, err := a.read(a.do(ctx, &upstream.Request{Method: http.MethodGet, URL: url}))
	account, _ := members(data)
	return a.balance(text(account["acc_balance"]), err)
}
