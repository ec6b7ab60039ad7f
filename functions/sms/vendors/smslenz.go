package vendors

import (
	"cmp"
	"context"
	"net/http"

	"github.com/go-json-experiment/json/jsontext"

	"svcapi/shared/upstream"
)

// smsLenz is SMSlenz.lk's API, as clients of smslenz.lk/developers/api use it. The vendor's own page was not available.
func smsLenz() Vendor {
	return Vendor{
		Spec: upstream.Spec{
			Name: "smslenz", Title: "SMSlenz.lk", Endpoint: "https://smslenz.lk/api",
			Settings: []upstream.Field{senderID},
			Secrets:  []upstream.Field{required("user_id", "user ID of the account"), apiKey},
		},
		Concurrency: unpublished, Batch: 100,
		New: func(c *upstream.Client, a upstream.Account) Adapter { return &smsLenzAdapter{caller{c, a}} },
	}
}

type smsLenzAdapter struct{ caller }

// smsLenzWords are the values that clients of the vendor know.
var smsLenzWords = map[string]bool{"success true": true, "success false": false, "status error": false}

// post adds the account to the body, and returns the data of a successful response. The fields are known from clients
// only: each may be missing.
func (a *smsLenzAdapter) post(ctx context.Context, path string, request map[string]any,
	send bool) (map[string]jsontext.Value, error) {
	request["user_id"], request["api_key"] = a.Secrets["user_id"], a.Secrets["api_key"]
	response, err := a.call(ctx, a.Endpoint+path, http.Header{"Accept": {"application/json"}}, request, send)
	values, err := a.read(smsLenzWords, response, err)
	data, _ := members(values["data"])
	return data, err
}

// Send implements Adapter.
func (a *smsLenzAdapter) Send(ctx context.Context, m Message) (Receipt, error) {
	path, request := "/send-sms", map[string]any{"sender_id": a.Settings["sender_id"], "message": m.Text}
	if len(m.To) == 1 {
		request["contact"] = m.To[0]
	} else {
		path, request["contacts"] = "/send-bulk-sms", m.To
	}
	data, err := a.post(ctx, path, request, true)
	if err != nil {
		return Receipt{}, err
	}
	return Receipt{Status: cmp.Or(text(data["status"]), "success"), ID: text(data["campaign_id"])}, nil
}

// Balance implements Balancer.
func (a *smsLenzAdapter) Balance(ctx context.Context) (string, error) {
	data, err := a.post(ctx, "/account-status", map[string]any{}, false)
	return a.balance(text(data["sms_credit_balance"]), err)
}
