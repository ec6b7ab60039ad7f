package vendors

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/sync/singleflight"
	"golang.org/x/time/rate"

	"svcapi/shared/cache"
	"svcapi/shared/upstream"
)

// tokens are the results of an instance's logins at one vendor, by endpoint, user and password. A changed password has
// no result.
type tokens struct {
	results *cache.Expiring[string, loginResult]
	running singleflight.Group // one login at a time, because a vendor counts those that fail
}

// loginResult is a token, or the error of a refused login.
type loginResult struct {
	token   string
	refused error
}

const (
	tokenMargin = 5 * time.Minute // before its end a token is renewed
	// refusedFor is the time without a login after a refused one. A vendor locks an account after several of them.
	refusedFor = 5 * time.Minute
	maxTokens  = 1000
)

func newTokens() *tokens { return &tokens{results: cache.NewExpiring[string, loginResult](maxTokens)} }

// tokenRefused is a class within this package only, because withToken logs in again.
const tokenRefused upstream.Class = "token_refused"

// loginClasses maps the class of a failed login to that of the send; AccountRefused for another class. Each is
// certain, because no message left.
var loginClasses = map[upstream.Class]upstream.Class{
	upstream.NotSent:            upstream.NotSent,
	upstream.NoResponse:         upstream.NotSent,
	upstream.TooFast:            upstream.TooFast,
	upstream.Rejected:           upstream.CredentialsRefused,
	upstream.CredentialsRefused: upstream.CredentialsRefused,
	tokenRefused:                upstream.CredentialsRefused,
}

// logIn returns a new token of a vendor and its life. The body has the user and the password.
type logIn func(ctx context.Context, body any) (token string, life time.Duration, err error)

// session is an account at a vendor with a login by user and password.
type session struct {
	caller
	tokens *tokens
}

// token returns a cached or a new token, and its key in the cache. The error of a refused login is cached, too.
func (s session) token(ctx context.Context, logIn logIn) (key, token string, err error) {
	user, password := s.Secrets["username"], s.Secrets["password"]
	key = s.Endpoint + " " + user + " " + password
	result, _, _ := s.tokens.running.Do(key, func() (any, error) {
		if known, ok := s.tokens.results.Get(key); ok {
			return known, nil
		}
		token, life, err := logIn(ctx, map[string]string{"username": user, "password": password})
		if failed, ok := errors.AsType[*upstream.Error](err); ok {
			failed.Class = cmp.Or(loginClasses[failed.Class], upstream.AccountRefused)
			failed.Detail, failed.ByWords = "login: "+failed.Detail, false
			if failed.Class == upstream.CredentialsRefused {
				life = refusedFor + tokenMargin
			}
		}
		result := loginResult{token, err}
		s.tokens.results.Put(key, result, life-tokenMargin) // nothing for other errors, whose life is 0
		return result, nil
	})
	known, _ := result.(loginResult)
	return key, known.token, known.refused
}

// withToken makes a call with a token. A call with a refused token does nothing, so withToken logs in and calls again.
func (s session) withToken(ctx context.Context, logIn logIn,
	call func(token string) (Receipt, error)) (Receipt, error) {
	var refused error
	for range 2 {
		key, token, err := s.token(ctx, logIn)
		if err != nil {
			return Receipt{}, err
		}
		receipt, err := call(token)
		if err == nil || upstream.ClassOf(err) != tokenRefused {
			return receipt, err
		}
		s.tokens.results.DeleteFunc(key, func(known loginResult) bool { return known.token == token }) // another may be new
		refused = err
	}
	return Receipt{}, s.refusal(upstream.CredentialsRefused, upstream.CodeOf(refused), refused.Error(), nil)
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
		return a.identified("accepted", response["serverRef"], err)
	})
}

type dialogAdapter struct{ caller }

// get returns the text after the code of success.
func (a *dialogAdapter) get(ctx context.Context, path string, query url.Values, send bool) (string, error) {
	query.Set("esmsqk", a.Secrets["esmsqk"])
	response, err := a.call(ctx, a.Endpoint+"/api/v1/message-via-url/"+path+"?"+query.Encode(), http.Header{}, nil, send)
	if err != nil {
		return "", err
	}
	body := strings.TrimSpace(string(response.Body))
	if failure, known := a.vendor.Codes[body]; known {
		return "", a.refusal(failure.Class, body, failure.Meaning, response.Header)
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
	return accepted("", nil, err)
}

// Balance implements Balancer.
func (a *dialogAdapter) Balance(ctx context.Context) (string, error) {
	return a.balance(a.get(ctx, "check/balance", url.Values{}, false))
}

// checksASecond is the pace of an instance; the vendor permits 120 checks of transactions in a minute.
const checksASecond = 2

type dialogV2Adapter struct {
	session
	checks *rate.Limiter
}

// idUsed is a class within this package only: an earlier call with the transaction ID was accepted.
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
	failure, known := a.vendor.Codes[code]
	switch {
	case status == "failed" && code == "103" && path == checkTransaction && response.Status < 500:
		return nil, c.refusal(noCampaign, code, failure.Meaning, nil)
	case status == "failed" && known:
		return nil, c.refusal(failure.Class, code, failure.Meaning+": "+comment, response.Header)
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
	return a.status(campaign.Status, err)
}

// count returns a number that is not negative, and 0 for any other value.
func count(v jsontext.Value) int {
	if n, err := strconv.ParseUint(text(v), 10, 16); err == nil {
		return int(n)
	}
	return 0
}
