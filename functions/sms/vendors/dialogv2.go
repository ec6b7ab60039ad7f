package vendors

import (
	"context"
	"crypto/rand"
	"math/big"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"svcapi/shared/bounded"
	"svcapi/shared/clock"
	"svcapi/shared/upstream"
)

// dialogV2 is Dialog eSMS's v2 JSON interface. A login returns a token, which the adapter caches until shortly before its
// end, or until the vendor refuses the token.
func dialogV2() Vendor {
	tokens := newDialogTokens(clock.Clock{})
	return Vendor{
		Spec: upstream.Spec{
			Name: "dialogv2", Title: "Dialog eSMS, v2", Endpoint: "https://e-sms.dialog.lk",
			Settings: []upstream.Field{senderID, unitPrice},
			Secrets: []upstream.Field{
				{Name: "username", Description: "user of the account", Required: true},
				{Name: "password", Description: "password of the account", Required: true},
			},
		},
		Batch: 100,
		New: func(c *upstream.Client, a upstream.Account) Adapter {
			return &dialogV2Adapter{caller{"dialogv2", c, a}, tokens}
		},
	}
}

// dialogTokens caches the tokens of an instance by account.
type dialogTokens struct {
	clock  clock.Clock
	cached *bounded.Map[string, dialogToken]
}

func newDialogTokens(clock clock.Clock) *dialogTokens {
	return &dialogTokens{clock, bounded.New[string, dialogToken](maxDialogTokens)}
}

type dialogToken struct {
	token   string
	expires time.Time
}

const (
	dialogTokenMargin = 5 * time.Minute // before its end a token is renewed
	maxDialogTokens   = 1000
)

func (t *dialogTokens) get(key string) string {
	cached, _ := t.cached.Get(key)
	if t.clock.Now().After(cached.expires) {
		return ""
	}
	return cached.token
}

func (t *dialogTokens) put(key, token string, life time.Duration) {
	t.cached.Put(key, dialogToken{token, t.clock.Now().Add(life - dialogTokenMargin)})
}

// drop deletes a refused token, unless another request has renewed the token.
func (t *dialogTokens) drop(key, token string) {
	t.cached.DeleteFunc(key, func(cached dialogToken) bool { return cached.token == token })
}

type dialogV2Adapter struct {
	caller
	tokens *dialogTokens
}

// dialogErrors are the errCode values about the account. Others, such as 108 (mask), are about the message.
var dialogErrors = map[string]upstream.Class{
	"100": dialogTokenRefused, "105": dialogTokenRefused, "106": dialogTokenRefused,
	"101": upstream.CredentialsRefused,
}

// dialogTokenRefused is a class of this file only, because SendSame logs in again.
const dialogTokenRefused upstream.Class = "token_refused"

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

type dialogLogin struct {
	Username string `json:"username"`
	Password string `json:"password"`
}

// post returns the members of a successful response.
func (a *dialogV2Adapter) post(ctx context.Context, path, token string, body any, send bool) (map[string]jsontext.Value, error) {
	content, err := json.Marshal(body)
	if err != nil {
		return nil, a.fail(upstream.NotSent, err.Error())
	}
	header := http.Header{"Content-Type": {"application/json"}}
	if token != "" {
		header.Set("Authorization", "Bearer "+token)
	}
	response, err := a.do(ctx, &upstream.Request{Method: http.MethodPost, URL: a.account.Endpoint + path, Header: header, Body: content, Send: send})
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
		return nil, c.fail(dialogTokenRefused, comment)
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

// loginClasses maps the class of a failed login to that of the send. No message left, so no class is uncertain.
var loginClasses = map[upstream.Class]upstream.Class{
	upstream.NotSent:            upstream.NotSent,
	upstream.NoResponse:         upstream.NotSent,
	upstream.Unusable:           upstream.Rejected,
	upstream.Rejected:           upstream.CredentialsRefused,
	upstream.CredentialsRefused: upstream.CredentialsRefused,
	dialogTokenRefused:          upstream.CredentialsRefused,
}

// login returns a cached or a new token.
func (a *dialogV2Adapter) login(ctx context.Context) (key, token string, err error) {
	user, password := a.account.Secrets["username"], a.account.Secrets["password"]
	key = a.account.Endpoint + " " + user + " " + password
	if token = a.tokens.get(key); token != "" {
		return key, token, nil
	}
	response, err := a.post(ctx, "/api/v2/user/login", "", dialogLogin{user, password}, false)
	if err != nil {
		return "", "", a.withCode(a.fail(loginClasses[upstream.ClassOf(err)], "login: "+err.Error()), upstream.CodeOf(err))
	}
	token = text(response["token"])
	seconds, err := time.ParseDuration(text(response["expiration"]) + "s")
	if token == "" || err != nil {
		return "", "", a.fail(upstream.Rejected, "login: response without token or expiration")
	}
	a.tokens.put(key, token, seconds)
	return key, token, nil
}

// Send implements Adapter.
func (a *dialogV2Adapter) Send(ctx context.Context, m Message) (Receipt, error) {
	return a.SendSame(ctx, []string{m.To}, m.Text, m.Unicode)
}

// SendSame implements SameSender. After a refused token nothing was sent, so SendSame logs in and sends once more.
func (a *dialogV2Adapter) SendSame(ctx context.Context, to []string, message string, _ bool) (Receipt, error) {
	transaction, err := rand.Int(rand.Reader, big.NewInt(999_999_999_999_999_999)) // 1 to 18 digits, unique
	if err != nil {
		return Receipt{}, a.fail(upstream.NotSent, err.Error())
	}
	request := dialogSend{Message: message, Source: a.account.Settings["sender_id"], TransactionID: transaction.Int64() + 1}
	for _, number := range each(to, bare) {
		request.Recipients = append(request.Recipients, dialogMobile{number})
	}
	var refused error
	for range 2 {
		key, token, err := a.login(ctx)
		if err != nil {
			return Receipt{}, err
		}
		response, err := a.post(ctx, "/api/v2/sms", token, request, true)
		if err == nil {
			return dialogReceipt(response), nil
		}
		if upstream.ClassOf(err) != dialogTokenRefused {
			return Receipt{}, err
		}
		a.tokens.drop(key, token)
		refused = err
	}
	return Receipt{}, a.withCode(a.fail(upstream.CredentialsRefused, refused.Error()), upstream.CodeOf(refused))
}

func dialogReceipt(response map[string]jsontext.Value) Receipt {
	var data map[string]jsontext.Value
	_ = json.Unmarshal(response["data"], &data) // an error changes nothing: the vendor has accepted the message
	return Receipt{Status: text(response["status"]), ID: text(data["campaignId"])}
}
