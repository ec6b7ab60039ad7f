package vendors

import (
	"cmp"
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"svcapi/shared/upstream"
)

// hutch is Hutch BSMS' API v1 (bsms.hutch.lk), as the Laravel package sureshhemal/laravel-sms-sri-lanka and other
// clients use it. The vendor publishes no document. A login returns a token.
func hutch() Vendor {
	tokens := newTokens()
	return Vendor{
		Spec: upstream.Spec{
			Name: "hutch", Title: "Hutch BSMS", Endpoint: "https://bsms.hutch.lk",
			Settings: []upstream.Field{senderID,
				{Name: "campaign_name", Description: "name of the campaigns in the vendor's reports; SMS where it is empty"}},
			Secrets: []upstream.Field{
				required("username", "API user of the account, not the user of the web pages"),
				required("password", "password of the API user"),
			},
		},
		Concurrency: unpublished, Batch: 100,
		New: func(c *upstream.Client, a upstream.Account) Adapter {
			return &hutchAdapter{session{caller{c, a}, tokens}}
		},
	}
}

// hutchTokenLife is the life of a token without a stated life. A token that ends earlier is refused, and a new one
// follows.
const hutchTokenLife = time.Hour

type hutchAdapter struct{ session }

// post returns the members of a response with the HTTP status of success.
func (a *hutchAdapter) post(ctx context.Context, path, token string, body any,
	send bool) (map[string]jsontext.Value, error) {
	header := bearer(token)
	header["Accept"], header["X-API-VERSION"] = []string{"*/*"}, []string{"v1"}
	response, err := a.call(ctx, a.Endpoint+path, header, body, send)
	if err != nil {
		return nil, err
	}
	values, _ := members(response.Body)
	c := a.redacting(map[string]string{"token": token, "issued token": text(values["accessToken"]),
		"refresh token": text(values["refreshToken"])})
	if token != "" && response.Status == http.StatusUnauthorized {
		return nil, c.fail(tokenRefused, string(response.Body))
	}
	if err := c.byWords(response); err != nil {
		return nil, err
	}
	if values == nil {
		return nil, c.fail(upstream.Unusable, string(response.Body))
	}
	return values, nil
}

// logIn returns a new token and its life.
func (a *hutchAdapter) logIn(ctx context.Context, login any) (string, time.Duration, error) {
	response, err := a.post(ctx, "/api/login", "", login, false)
	if err != nil {
		return "", 0, err
	}
	token := text(response["accessToken"])
	if token == "" {
		return "", 0, a.fail(upstream.Unusable, "response without accessToken")
	}
	life, err := time.ParseDuration(text(response["expiresIn"]) + "s")
	if err != nil {
		life = hutchTokenLife
	}
	return token, life, nil
}

// Send implements Adapter. A response without serverRef does not show that the vendor has accepted the message.
func (a *hutchAdapter) Send(ctx context.Context, m Message) (Receipt, error) {
	request := map[string]string{
		"campaignName": cmp.Or(a.Settings["campaign_name"], "SMS"), "mask": a.Settings["sender_id"],
		"numbers": strings.Join(each(m.To, international), ","), "content": m.Text,
	}
	return a.withToken(ctx, a.logIn, func(token string) (Receipt, error) {
		response, err := a.post(ctx, "/api/sendsms", token, request, true)
		if err != nil {
			return Receipt{}, err
		}
		id := text(response["serverRef"])
		if id == "" {
			return Receipt{}, a.fail(upstream.Unusable, "response without serverRef")
		}
		return Receipt{Status: "accepted", ID: id}, nil
	})
}
