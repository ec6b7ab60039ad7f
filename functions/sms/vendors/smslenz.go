package vendors

import (
	"cmp"
	"context"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"svcapi/shared/upstream"
)

// smsLenz is SMSlenz.lk's API, as clients of smslenz.lk/developers/api use it. The vendor's own page was not available.
func smsLenz() Vendor {
	return Vendor{
		Spec: upstream.Spec{
			Name: "smslenz", Title: "SMSlenz.lk", Endpoint: "https://smslenz.lk/api",
			Settings: []upstream.Field{senderID, unitPrice},
			Secrets: []upstream.Field{
				{Name: "user_id", Description: "user ID of the account", Required: true},
				{Name: "api_key", Description: "API key of the account", Required: true},
			},
		},
		Concurrency: unpublished, Batch: 100,
		New: func(c *upstream.Client, a upstream.Account) Adapter { return &smsLenzAdapter{caller{"smslenz", c, a}} },
	}
}

type smsLenzAdapter struct{ caller }

// smsLenzRequest is the union of the calls' bodies. Each call has the account in the body.
type smsLenzRequest struct {
	UserID   string   `json:"user_id"`
	APIKey   string   `json:"api_key"`
	SenderID string   `json:"sender_id,omitzero"`
	Contact  string   `json:"contact,omitzero"`
	Contacts []string `json:"contacts,omitzero"`
	Message  string   `json:"message,omitzero"`
}

// call returns the data of a successful response. A failure has "success": false, with a message and the errors by field.
func (a *smsLenzAdapter) call(ctx context.Context, path string, request smsLenzRequest, send bool) (map[string]jsontext.Value, error) {
	request.UserID, request.APIKey = a.account.Secrets["user_id"], a.account.Secrets["api_key"]
	response, err := a.postJSON(ctx, a.account.Endpoint+path, "", http.Header{"Accept": {"application/json"}}, request, send)
	if err != nil {
		return nil, err
	}
	if err := a.byWords(response); err != nil {
		return nil, err
	}
	values, status := members(response.Body)
	switch {
	case text(values["success"]) == "true":
		data, _ := members(values["data"]) // the fields are known from clients only: each may be missing
		return data, nil
	case text(values["success"]) == "false", strings.EqualFold(status, "error"):
		return nil, a.byText(strings.TrimSpace(text(values["message"]) + " " + string(values["errors"])))
	}
	return nil, a.fail(upstream.Unusable, string(response.Body))
}

// Send implements Adapter.
func (a *smsLenzAdapter) Send(ctx context.Context, m Message) (Receipt, error) {
	return a.send(ctx, "/send-sms", smsLenzRequest{Contact: m.To, Message: m.Text})
}

// SendSame implements SameSender.
func (a *smsLenzAdapter) SendSame(ctx context.Context, to []string, m Message) (Receipt, error) {
	return a.send(ctx, "/send-bulk-sms", smsLenzRequest{Contacts: to, Message: m.Text})
}

func (a *smsLenzAdapter) send(ctx context.Context, path string, request smsLenzRequest) (Receipt, error) {
	request.SenderID = a.account.Settings["sender_id"]
	data, err := a.call(ctx, path, request, true)
	if err != nil {
		return Receipt{}, err
	}
	return Receipt{Status: cmp.Or(text(data["status"]), "success"), ID: text(data["campaign_id"])}, nil
}

// Balance implements Balancer.
func (a *smsLenzAdapter) Balance(ctx context.Context) (string, error) {
	data, err := a.call(ctx, "/account-status", smsLenzRequest{}, false)
	return a.balance(text(data["sms_credit_balance"]), err)
}
