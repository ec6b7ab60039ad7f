package vendors

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"svcapi/shared/upstream"
)

// dialog is Dialog eSMS's URL method (3rd Party SMS API v2.5): GET, with a code as the whole response.
func dialog() Vendor {
	return Vendor{
		Spec: upstream.Spec{
			Name: "dialog", Title: "Dialog eSMS, URL method", Endpoint: "https://e-sms.dialog.lk",
			Settings: []upstream.Field{senderID},
			Secrets:  []upstream.Field{required("esmsqk", "key of the URL method (esmsqk)")},
		},
		Concurrency: unpublished,
		Batch:       100, // keeps the URL short
		New:         func(c *upstream.Client, a upstream.Account) Adapter { return &dialogAdapter{caller{c, a}} },
	}
}

type dialogAdapter struct{ caller }

// documented is a row of a vendor's failure codes.
type documented struct {
	class   upstream.Class
	meaning string
}

// dialogCodes are the vendor's failure codes: 3rd Party SMS API v2.5, and 2013 of v3.2.
var dialogCodes = map[string]documented{
	"2001": {upstream.Rejected, "campaign creation failed"},
	"2002": {upstream.Rejected, "bad request"},
	"2003": {upstream.Rejected, "empty number list"},
	"2004": {upstream.Rejected, "empty message"},
	"2005": {upstream.Rejected, "invalid number list"},
	"2006": {upstream.CredentialsRefused, "account not allowed to use GET"},
	"2007": {upstream.CredentialsRefused, "invalid key"},
	"2008": {upstream.AccountRefused, "insufficient balance or quota"},
	"2009": {upstream.Rejected, "no valid numbers left after mask block"},
	"2010": {upstream.AccountRefused, "not eligible for packaging"},
	"2011": {upstream.Unusable, "transactional error"}, // the document does not say of which step
	"2013": {upstream.AccountRefused, "no campaigns between 20:00 and 08:00"},
}

// get returns the text after the code of success.
func (a *dialogAdapter) get(ctx context.Context, path string, query url.Values, send bool) (string, error) {
	query.Set("esmsqk", a.Secrets["esmsqk"])
	response, err := a.call(ctx, a.Endpoint+"/api/v1/message-via-url/"+path+"?"+query.Encode(), http.Header{}, nil, send)
	if err != nil {
		return "", err
	}
	body := strings.TrimSpace(string(response.Body))
	if failure, known := dialogCodes[body]; known {
		return "", a.refusal(failure.class, body, failure.meaning, response.Header)
	}
	if err := a.byStatus(response, ""); err != nil {
		return "", err
	}
	code, rest, _ := strings.Cut(body, "|")
	if code != "1" {
		return "", a.fail(upstream.Unusable, body)
	}
	return rest, nil
}

// Send implements Adapter.
func (a *dialogAdapter) Send(ctx context.Context, m Message) (Receipt, error) {
	_, err := a.get(ctx, "create/url-campaign", url.Values{
		"list": {strings.Join(each(m.To, local), ",")}, "source_address": {a.Settings["sender_id"]}, "message": {m.Text},
	}, true)
	if err != nil {
		return Receipt{}, err
	}
	return Receipt{Status: "success"}, nil
}

// Balance implements Balancer.
func (a *dialogAdapter) Balance(ctx context.Context) (string, error) {
	return a.balance(a.get(ctx, "check/balance", url.Values{}, false))
}
