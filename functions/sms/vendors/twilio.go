package vendors

import (
	"cmp"
	"context"
	"encoding/base64"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

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
		// The vendor limits calls at once without a number; above the limit error 20429 is certain (twilio.com/docs/errors/20429).
		Concurrency: 32,
		New:         func(c *upstream.Client, a upstream.Account) Adapter { return &twilioAdapter{caller{"twilio", c, a}} },
	}
}

type twilioAdapter struct{ caller }

type twilioResponse struct {
	SID       string `json:"sid"`
	Status    string `json:"status"`
	ErrorCode int    `json:"error_code"` // of a message that will not be sent
	Balance   string `json:"balance"`
	Currency  string `json:"currency"`

	Messages []twilioMessage `json:"messages"`
	Next     string          `json:"next_page_uri"` // empty on the last page
}

// twilioMessage is a message of a list.
type twilioMessage struct {
	To      string `json:"to"`
	Body    string `json:"body"`
	Status  string `json:"status"`
	Created string `json:"date_created"` // RFC 2822
}

type twilioError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// twilioCodes are the codes about the account (twilio.com/docs/errors). All others are about the message, such as
// 21211 (the number), 21608 (not verified on trial), 21610 (opted out), 21612 and 21614 (no route, no mobile).
var twilioCodes = map[int]upstream.Class{
	20003: upstream.CredentialsRefused, // authenticate
	20404: upstream.CredentialsRefused, // the account is not found; for a message CheckStatus reads the code
	20429: upstream.TooFast,            // too many requests
	21606: upstream.AccountRefused,     // the From number cannot be used
	21611: upstream.TooFast,            // the queue of the From number is full
	21659: upstream.AccountRefused,     // the From number is not the account's
}

// codeText returns a code as text, and "" for 0, which is no code.
func codeText(code int) string {
	if code == 0 {
		return ""
	}
	return strconv.Itoa(code)
}

func (a *twilioAdapter) call(ctx context.Context, method, resource string, form url.Values) (twilioResponse, error) {
	secrets := a.account.Secrets
	user := cmp.Or(secrets["api_key_sid"], secrets["account_sid"])
	response, err := a.do(ctx, &upstream.Request{
		Method: method, Body: []byte(form.Encode()), Send: method == http.MethodPost,
		URL: a.account.Endpoint + "/2010-04-01/Accounts/" + url.PathEscape(secrets["account_sid"]) + resource,
		Header: http.Header{
			"Content-Type":  {"application/x-www-form-urlencoded"},
			"Authorization": {"Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+secrets["auth_token"]))},
		},
	})
	var result twilioResponse
	if err != nil {
		return result, err
	}
	var failure twilioError
	if json.Unmarshal(response.Body, &failure) != nil {
		failure = twilioError{}
	}
	code := codeText(failure.Code)
	if class := twilioCodes[failure.Code]; class != "" {
		return result, a.refusal(class, code, failure.Message, response.Header)
	}
	if err := a.byStatus(response); err != nil {
		return result, a.withCode(err, code)
	}
	if code != "" { // an error with the HTTP status of success
		return result, a.refusal(upstream.Rejected, code, failure.Message, nil)
	}
	if err := json.Unmarshal(response.Body, &result); err != nil {
		return result, a.fail(upstream.Unusable, string(response.Body))
	}
	return result, nil
}

// Send implements Adapter.
func (a *twilioAdapter) Send(ctx context.Context, m Message) (Receipt, error) {
	sender, from := a.account.Settings["sender_id"], "From"
	if strings.HasPrefix(sender, "MG") && len(sender) == 34 {
		from = "MessagingServiceSid"
	}
	response, err := a.call(ctx, http.MethodPost, "/Messages.json", url.Values{"To": {m.To}, from: {sender}, "Body": {m.Text}})
	switch {
	case err != nil:
		return Receipt{}, err
	case response.SID == "" || response.Status == "":
		return Receipt{}, a.fail(upstream.Unusable, "response without sid or status")
	case twilioStates[response.Status] == StateFailed: // the message exists and will not be sent
		return Receipt{}, a.withCode(a.fail(upstream.Rejected, "message "+response.Status), codeText(response.ErrorCode))
	}
	return Receipt{Status: response.Status, ID: response.SID}, nil
}

// twilioStates are the states of an outgoing message (twilio.com/docs/messaging/api/message-resource).
var twilioStates = map[string]State{
	"accepted": StateAccepted, "scheduled": StateAccepted, "queued": StateAccepted, "sending": StateAccepted,
	"sent": StateSent, "delivered": StateDelivered, "read": StateDelivered,
	"failed": StateFailed, "undelivered": StateFailed, "canceled": StateFailed,
}

// CheckStatus implements StatusChecker. Without its ID, CheckStatus searches for the message.
func (a *twilioAdapter) CheckStatus(ctx context.Context, s PastSend) (Status, error) {
	if s.ID == "" {
		return a.search(ctx, s)
	}
	message, err := a.call(ctx, http.MethodGet, "/Messages/"+url.PathEscape(s.ID)+".json", nil)
	if upstream.CodeOf(err) == "20404" {
		return Status{State: StateNotFound, Word: "20404"}, nil
	}
	return a.status(twilioStates, message.Status, err)
}

// search compares the messages of the account that were created during the send, from a minute before its end to 15 seconds,
// a difference of the clocks, after it. Any other number of them than one with the number and the text is inconclusive, and so is
// more than a page has: the list can lack a message, so that a search never proves its absence.
func (a *twilioAdapter) search(ctx context.Context, s PastSend) (Status, error) {
	from, to := s.Ended.Add(-time.Minute).UTC(), s.Ended.Add(10*time.Minute).UTC()
	query := url.Values{"PageSize": {"1000"}, "DateSent>": {from.Format(time.RFC3339)}, "DateSent<": {to.Format(time.RFC3339)}}
	list, err := a.call(ctx, http.MethodGet, "/Messages.json?"+query.Encode(), nil)
	found := slices.DeleteFunc(list.Messages, func(m twilioMessage) bool {
		created, err := time.Parse(time.RFC1123Z, m.Created)
		return err != nil || created.Before(from) || created.After(s.Ended.Add(15*time.Second)) || !s.IsTo(m.To, m.Body)
	})
	switch {
	case err != nil:
		return Status{}, err
	case len(found) != 1 || list.Next != "":
		return Status{State: StateUnknown, Reason: ReasonInconclusive}, nil
	}
	state, err := a.status(twilioStates, found[0].Status, nil)
	state.searched = true
	return state, err
}

// Balance implements Balancer.
func (a *twilioAdapter) Balance(ctx context.Context) (string, error) {
	response, err := a.call(ctx, http.MethodGet, "/Balance.json", nil)
	balance, err := a.balance(response.Balance, err)
	return strings.TrimSpace(balance + " " + response.Currency), err
}
