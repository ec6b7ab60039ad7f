package vendors

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/time/rate"

	"svcapi/shared/upstream"
)

// dialogV2 is Dialog eSMS's v2 JSON interface, as clients of the vendor's documents v3.0 and v3.2 use it. A login
// returns a token, which the adapter caches until shortly before its end, or until the vendor refuses the token.
func dialogV2() Vendor {
	tokens, checks := newTokens(), rate.NewLimiter(checksASecond, 1)
	return Vendor{
		Spec: upstream.Spec{
			Name: "dialogv2", Title: "Dialog eSMS, v2", Endpoint: "https://e-sms.dialog.lk",
			Settings: []upstream.Field{senderID},
			Secrets: []upstream.Field{
				required("username", "user of the account"), required("password", "password of the account"),
			},
		},
		Pace: 20, Concurrency: unpublished, Batch: 1000,
		New: func(c *upstream.Client, a upstream.Account) Adapter {
			return &dialogV2Adapter{session{caller{c, a}, tokens}, checks}
		},
	}
}

// checksASecond is the pace of an instance; the vendor permits 120 checks of transactions in a minute.
const checksASecond = 2

type dialogV2Adapter struct {
	session
	checks *rate.Limiter
}

// dialogV2Codes are the errCode values (interface v3.2, as two of its clients have them).
var dialogV2Codes = map[string]documented{
	"100": {tokenRefused, "token expired"},
	"101": {upstream.Rejected, "invalid parameters"},
	"102": {upstream.CredentialsRefused, "user unknown"},
	"103": {upstream.Unusable, "no campaign for the transaction ID"}, // no response to a send
	"104": {idUsed, "transaction ID used before"},
	"105": {tokenRefused, "bad signature of the token"},
	"106": {tokenRefused, "token missing"},
	"107": {upstream.Rejected, "missing parameters"},
	"108": {upstream.AccountRefused, "sender mask not active"},
	"109": {upstream.Rejected, "no valid number left"},
	"110": {upstream.AccountRefused, "not eligible for packages"},
	"111": {upstream.AccountRefused, "package of the month used up"},
	"112": {upstream.AccountRefused, "package balance"},
	"113": {upstream.AccountRefused, "package in maintenance"},
	"114": {upstream.AccountRefused, "wallet balance"},
	"115": {upstream.CredentialsRefused, "wrong user or password"},
	"116": {upstream.CredentialsRefused, "account locked after failed logins"},
	"117": {upstream.TooFast, "too many requests"},
	"118": {upstream.AccountRefused, "no campaigns between 20:00 and 08:00"},
	"119": {upstream.AccountRefused, "post-paid limit"},
	"999": {upstream.Unusable, "internal error"},
}

// idUsed is a class within this file only: an earlier call with the transaction ID was accepted.
const idUsed upstream.Class = "id_used"

// noCampaign is a class within this file only: the vendor has accepted no call with the transaction ID.
const noCampaign upstream.Class = "no_campaign"

// checkTransaction is the path of the one call whose code 103 proves an absence.
const checkTransaction = "/api/v2/sms/check-transaction"

// maxTransaction is the largest transaction ID, with 18 digits.
const maxTransaction = 999_999_999_999_999_999

// transaction returns the transaction ID of the call with a key, 1 to maxTransaction. The vendor accepts an ID once.
func transaction(key string) uint64 {
	sum := sha256.Sum256([]byte(key))
	return binary.BigEndian.Uint64(sum[:])%maxTransaction + 1
}

// post returns the members of a successful response.
func (a *dialogV2Adapter) post(ctx context.Context, path, token string, body any,
	send bool) (map[string]jsontext.Value, error) {
	response, err := a.call(ctx, a.Endpoint+path, bearer(token), body, send)
	if err != nil {
		return nil, err
	}
	values, status := members(response.Body)
	c := a.redacting(map[string]string{"token": token, "issued token": text(values["token"])})
	code, comment := text(values["errCode"]), text(values["comment"])
	failure, known := dialogV2Codes[code]
	switch {
	case status == "failed" && code == "103" && path == checkTransaction && response.Status < 500:
		return nil, c.refusal(noCampaign, code, failure.meaning, nil)
	case status == "failed" && known:
		return nil, c.refusal(failure.class, code, failure.meaning+": "+comment, response.Header)
	case status == "failed" && code != "": // neither documented as a refusal nor as a doubt
		return nil, c.refusal(upstream.Unusable, code, comment, nil)
	case token != "" && response.Status == http.StatusUnauthorized:
		return nil, c.fail(tokenRefused, comment)
	}
	if err := c.byStatus(response, code); err != nil {
		return nil, err
	}
	switch status {
	case "success":
		return values, nil
	case "failed":
		if send { // without a code, a send may have left
			return nil, c.fail(upstream.Unusable, comment)
		}
		return nil, c.fail(upstream.Rejected, comment)
	}
	return nil, c.fail(upstream.Unusable, string(response.Body))
}

// logIn returns a new token and its life.
func (a *dialogV2Adapter) logIn(ctx context.Context, login any) (string, time.Duration, error) {
	response, err := a.post(ctx, "/api/v2/user/login", "", login, false)
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

// Send implements Adapter. The vendor reports the removed recipients, and refuses a call that leaves none.
func (a *dialogV2Adapter) Send(ctx context.Context, m Message) (Receipt, error) {
	var recipients []map[string]string
	for _, number := range each(m.To, bare) {
		recipients = append(recipients, map[string]string{"mobile": number})
	}
	request := map[string]any{
		"msisdn": recipients, "message": m.Text, "sourceAddress": a.Settings["sender_id"],
		"transaction_id": transaction(m.Key), "payment_method": 0, // of the wallet
	}
	return a.withToken(ctx, a.logIn, func(token string) (Receipt, error) {
		response, err := a.post(ctx, "/api/v2/sms", token, request, true)
		if upstream.ClassOf(err) == idUsed {
			return Receipt{Status: "success"}, nil
		}
		if err != nil {
			return Receipt{}, err
		}
		data, _ := members(response["data"]) // an error changes nothing: the vendor has accepted the message
		removed := Removed{count(data["duplicatesRemoved"]), count(data["invalidNumbers"]),
			count(data["mask_blocked_numbers"])}
		if removed.Sum() >= len(m.To) {
			class := upstream.Rejected
			// No document says that the counts exclude each other, and the first copy of a duplicate may have left.
			if len(m.To) > 1 || removed.Duplicates > 0 {
				class = upstream.Unusable
			}
			return Receipt{}, a.fail(class, fmt.Sprintf("the vendor has removed every recipient: %+v", removed))
		}
		return Receipt{Status: text(response["status"]), ID: text(data["campaignId"]), Removed: removed}, nil
	})
}

// dialogV2States are the states of a campaign. A completed campaign was handed to the network, delivered or not.
var dialogV2States = map[string]State{"pending": StateAccepted, "running": StateAccepted, "completed": StateSent}

// CheckStatus implements StatusChecker by the transaction ID, which needs no response to the send.
func (a *dialogV2Adapter) CheckStatus(ctx context.Context, s PastSend) (Status, error) {
	if err := a.checks.Wait(ctx); err != nil {
		return Status{}, a.fail(upstream.TooFast, err.Error())
	}
	campaign, err := a.withToken(ctx, a.logIn, func(token string) (Receipt, error) {
		body := map[string]uint64{"transaction_id": transaction(s.Key)}
		response, err := a.post(ctx, checkTransaction, token, body, false)
		data, _ := members(response["data"])
		return Receipt{Status: text(data["campaign status"])}, err
	})
	if upstream.ClassOf(err) == noCampaign {
		return Status{State: StateNotFound, Word: "103"}, nil
	}
	return a.status(dialogV2States, campaign.Status, err)
}

// count returns a number that is not negative, and 0 for any other value.
func count(v jsontext.Value) int {
	if n, err := strconv.ParseUint(text(v), 10, 16); err == nil {
		return int(n)
	}
	return 0
}
