package vendors

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/go-json-experiment/json"

	"svcapi/shared/upstream"
)

// twilio is Twilio's Messages resource (REST API 2010-04-01).
func twilio() Vendor {
	return Vendor{
		Spec: upstream.Spec{
			Name: "twilio", Title: "Twilio", Endpoint: "https://api.twilio.com",
			Settings: []upstream.Field{
				{Name: "sender_id", Description: "From number or name, or a Messaging Service SID (MG…)", Required: true},
				unitPrice,
			},
			Secrets: []upstream.Field{
				{Name: "account_sid", Description: "Account SID (AC…)", Required: true},
				{Name: "auth_token", Description: "auth token, or the secret of api_key_sid", Required: true},
				{Name: "api_key_sid", Description: "API key SID (SK…), where an API key is used"},
			},
		},
		New: func(client *upstream.Client, account upstream.Account) Adapter {
			return &twilioAdapter{caller{"twilio", client, account}}
		},
	}
}

type twilioAdapter struct{ caller }

type twilioAnswer struct {
	SID      string `json:"sid"`
	Status   string `json:"status"`
	Balance  string `json:"balance"`
	Currency string `json:"currency"`
}

type twilioError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// twilioCodes are the codes that are about the account, not about the message.
var twilioCodes = map[int]upstream.Class{
	20003: upstream.CredentialsRefused, // authenticate
	20404: upstream.CredentialsRefused, // the account's own resource is not found
}

// twilioDead are the statuses of a message that was created and will not be sent.
var twilioDead = map[string]bool{"failed": true, "undelivered": true, "canceled": true}

func (a *twilioAdapter) call(ctx context.Context, method, resource string, form url.Values) (twilioAnswer, error) {
	secrets := a.account.Secrets
	user := secrets["api_key_sid"]
	if user == "" {
		user = secrets["account_sid"]
	}
	response, err := a.do(ctx, &upstream.Request{
		Method: method, Body: []byte(form.Encode()), Send: method == http.MethodPost,
		URL: a.account.Endpoint + "/2010-04-01/Accounts/" + url.PathEscape(secrets["account_sid"]) + resource,
		Header: http.Header{
			"Content-Type":  {"application/x-www-form-urlencoded"},
			"Authorization": {"Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+secrets["auth_token"]))},
		},
	})
	var answer twilioAnswer
	if err != nil {
		return answer, err
	}
	var refusal twilioError
	if json.Unmarshal(response.Body, &refusal) == nil && twilioCodes[refusal.Code] != "" {
		return answer, a.fail(twilioCodes[refusal.Code], fmt.Sprintf("%d %s", refusal.Code, refusal.Message))
	}
	if err := a.byStatus(response); err != nil {
		return answer, err
	}
	if refusal.Code != 0 { // an error, whatever the status says
		return answer, a.fail(upstream.Rejected, fmt.Sprintf("%d %s", refusal.Code, refusal.Message))
	}
	if err := json.Unmarshal(response.Body, &answer); err != nil {
		return answer, a.fail(upstream.Unusable, string(response.Body))
	}
	return answer, nil
}

// Send implements Adapter.
func (a *twilioAdapter) Send(ctx context.Context, m Message) (Receipt, error) {
	sender, from := a.account.Settings["sender_id"], "From"
	if strings.HasPrefix(sender, "MG") && len(sender) == 34 {
		from = "MessagingServiceSid"
	}
	answer, err := a.call(ctx, http.MethodPost, "/Messages.json", url.Values{"To": {m.To}, from: {sender}, "Body": {m.Text}})
	switch {
	case err != nil:
		return Receipt{}, err
	case answer.SID == "" || answer.Status == "":
		return Receipt{}, a.fail(upstream.Unusable, "answer without sid or status")
	case twilioDead[answer.Status]:
		return Receipt{}, a.fail(upstream.Rejected, "message "+answer.Status)
	}
	return Receipt{Status: answer.Status, ID: answer.SID}, nil
}

// Balance implements Balancer.
func (a *twilioAdapter) Balance(ctx context.Context) (string, error) {
	answer, err := a.call(ctx, http.MethodGet, "/Balance.json", nil)
	if err != nil {
		return "", err
	}
	if !isNumber(answer.Balance) {
		return "", a.fail(upstream.Unusable, "answer without a balance")
	}
	return strings.TrimSpace(answer.Balance + " " + answer.Currency), nil
}
