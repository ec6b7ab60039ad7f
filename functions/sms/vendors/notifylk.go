package vendors

import (
	"cmp"
	"context"
	"net/http"
	"net/url"

	"svcapi/shared/upstream"
)

// notifyLK is Notify.lk's API v1: one recipient a call, no message ID, no documented form of errors.
func notifyLK() Vendor {
	return Vendor{
		Spec: upstream.Spec{
			Name: "notifylk", Title: "Notify.lk", Endpoint: "https://app.notify.lk",
			Settings: []upstream.Field{senderID},
			Secrets:  []upstream.Field{required("user_id", "user ID of the account"), apiKey},
		},
		Concurrency: unpublished,
		New:         func(c *upstream.Client, a upstream.Account) Adapter { return &notifyAdapter{caller{c, a}} },
	}
}

type notifyAdapter struct{ caller }

func (a *notifyAdapter) credentials() url.Values {
	return url.Values{"user_id": {a.Secrets["user_id"]}, "api_key": {a.Secrets["api_key"]}}
}

// notifyWords are the success that the vendor documents, and the refusals that its clients know.
var notifyWords = map[string]bool{"status success": true, "status error": false, "status failed": false}

// Send implements Adapter. Send posts a form, so that the key is not in the URL.
func (a *notifyAdapter) Send(ctx context.Context, m Message) (Receipt, error) {
	form := a.credentials()
	form.Set("sender_id", a.Settings["sender_id"])
	form.Set("to", international(m.To[0]))
	form.Set("message", m.Text)
	if m.Unicode {
		form.Set("type", "unicode")
	}
	response, err := a.call(ctx, a.Endpoint+"/api/v1/send", http.Header{}, form, true)
	values, err := a.read(notifyWords, response, err)
	if err != nil {
		return Receipt{}, err
	}
	return Receipt{Status: cmp.Or(text(values["data"]), "success")}, nil
}

// Balance implements Balancer.
func (a *notifyAdapter) Balance(ctx context.Context) (string, error) {
	response, err := a.call(ctx, a.Endpoint+"/api/v1/status?"+a.credentials().Encode(), http.Header{}, nil, false)
	values, err := a.read(notifyWords, response, err)
	account, _ := members(values["data"])
	return a.balance(text(account["acc_balance"]), err)
}
