package vendors

import (
	"context"
	"crypto/rand"
	"math/big"
	"net/http"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"svcapi/shared/cache"
	"svcapi/shared/upstream"
)

// dialogV2 is Dialog eSMS's v2 JSON interface. A login returns a token, which the adapter caches until shortly before its
// end, or until the vendor refuses the token.
func dialogV2() Vendor {
	tokens := cache.NewExpiring[string, string](maxTokens)
	return Vendor{
		Spec: upstream.Spec{
			Name: "dialogv2", Title: "Dialog eSMS, v2", Endpoint: "https://e-sms.dialog.lk",
			Settings: []upstream.Field{senderID, unitPrice},
			Secrets: []upstream.Field{
				{Name: "username", Description: "user of the account", Required: true},
				{Name: "password", Description: "password of the account", Required: true},
			},
		},
		Concurrency: unpublished, Batch: 100,
		New: func(c *upstream.Client, a upstream.Account) Adapter {
			return &dialogV2Adapter{session{caller{"dialogv2", c, a}, tokens}}
		},
	}
}

type dialogV2Adapter struct{ session }

// dialogErrors are the errCode values that do not refuse the message alone (interface v3.2). Others, such as 108 (mask), do.
var dialogErrors = map[string]upstream.Class{
	"100": tokenRefused, "105": tokenRefused, "106": tokenRefused,
	"102": upstream.CredentialsRefused, "115": upstream.CredentialsRefused, "116": upstream.CredentialsRefused,
	"104": upstream.Unusable, // the transaction ID was used: an earlier request may have been accepted
	"999": upstream.Unusable, // internal error
}

type dialogMobile struct {
	Mobile string `json:"mobile"`
}

type dialogSend struct {
	Recipients    []dialogMobile `json:"msisdn"`
	Message       string         `json:"message"`
	Source        string         `json:"sourceAddress"`
	TransactionID int64          `json:"transaction_id"`
	PaymentMethod int            `json:"payment_method"` // 0: wallet
}

// post returns the members of a successful response.
func (a *dialogV2Adapter) post(ctx context.Context, path, token string, body any, send bool) (map[string]jsontext.Value, error) {
	response, err := a.postJSON(ctx, a.account.Endpoint+path, token, http.Header{}, body, send)
	if err != nil {
		return nil, err
	}
	values, status := members(response.Body)
	c := a.redacting(map[string]string{"token": token, "issued token": text(values["token"])})
	code, comment := text(values["errCode"]), text(values["comment"])
	class, known := dialogErrors[code]
	switch {
	case status == "failed" && known:
		return nil, c.withCode(c.fail(class, code+" "+comment), code)
	case token != "" && response.Status == http.StatusUnauthorized:
		return nil, c.fail(tokenRefused, comment)
	}
	if err := c.byStatus(response); err != nil {
		return nil, c.withCode(err, code)
	}
	switch status {
	case "success":
		return values, nil
	case "failed":
		return nil, c.withCode(c.fail(upstream.Rejected, code+" "+comment), code)
	}
	return nil, c.fail(upstream.Unusable, string(response.Body))
}

// logIn returns a new token and its life.
func (a *dialogV2Adapter) logIn(ctx context.Context, l login) (string, time.Duration, error) {
	response, err := a.post(ctx, "/api/v2/user/login", "", l, false)
	if err != nil {
		return "", 0, err
	}
	token := text(response["token"])
	life, err := time.ParseDuration(text(response["expiration"]) + "s")
	if token == "" || err != nil {
		return "", 0, a.fail(upstream.Unusable, "response without token or expiration")
	}
	return token, life, nil
}

// Send implements Adapter.
func (a *dialogV2Adapter) Send(ctx context.Context, m Message) (Receipt, error) {
	return a.SendSame(ctx, []string{m.To}, m.Text, m.Unicode)
}

// SendSame implements SameSender.
func (a *dialogV2Adapter) SendSame(ctx context.Context, to []string, message string, _ bool) (Receipt, error) {
	transaction, err := rand.Int(rand.Reader, big.NewInt(999_999_999_999_999_999)) // 1 to 18 digits, unique
	if err != nil {
		return Receipt{}, a.fail(upstream.NotSent, err.Error())
	}
	request := dialogSend{Message: message, Source: a.account.Settings["sender_id"], TransactionID: transaction.Int64() + 1}
	for _, number := range each(to, bare) {
		request.Recipients = append(request.Recipients, dialogMobile{number})
	}
	return a.send(ctx, a.logIn, func(token string) (Receipt, error) {
		response, err := a.post(ctx, "/api/v2/sms", token, request, true)
		if err != nil {
			return Receipt{}, err
		}
		data, _ := members(response["data"]) // an error changes nothing: the vendor has accepted the message
		return Receipt{Status: text(response["status"]), ID: text(data["campaignId"])}, nil
	})
}
