package vendors

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"svcapi/shared/pattern"
	"svcapi/shared/upstream"
)

type notifyAdapter struct{ caller }

func (a *notifyAdapter) credentials() url.Values {
	return url.Values{"user_id": {a.Secrets["user_id"]}, "api_key": {a.Secrets["api_key"]}}
}

// Send implements Adapter. Send posts a form, so that the key is not in the URL.
func (a *notifyAdapter) Send(ctx context.Context, m Message) (Receipt, error) {
	form := a.credentials()
	form.Set("sender_id", a.Settings["sender_id"])
	form.Set("to", international(m.To[0]))
	form.Set("message", m.Text)
	if m.Unicode {
		form.Set("type", "unicode")
	}
	values, err := a.read(a.call(ctx, a.Endpoint+"/api/v1/send", http.Header{}, form, true))
	return accepted(text(values["data"]), nil, err)
}

// Balance implements Balancer.
func (a *notifyAdapter) Balance(ctx context.Context) (string, error) {
	query := a.credentials().Encode()
	account, err := a.data(a.call(ctx, a.Endpoint+"/api/v1/status?"+query, http.Header{}, nil, false))
	return a.balance(text(account["acc_balance"]), err)
}

type smsLenzAdapter struct{ caller }

// post adds the account to the body, and returns the data of a successful response.
func (a *smsLenzAdapter) post(ctx context.Context, path string, request map[string]any,
	send bool) (map[string]jsontext.Value, error) {
	request["user_id"], request["api_key"] = a.Secrets["user_id"], a.Secrets["api_key"]
	return a.data(a.call(ctx, a.Endpoint+path, http.Header{"Accept": {"application/json"}}, request, send))
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
	return accepted(text(data["status"]), data["campaign_id"], err)
}

// Balance implements Balancer.
func (a *smsLenzAdapter) Balance(ctx context.Context) (string, error) {
	data, err := a.post(ctx, "/account-status", map[string]any{}, false)
	return a.balance(text(data["sms_credit_balance"]), err)
}

// ultimateAdapter is the adapter of the installations of Ultimate SMS, whose API has a path below the endpoint.
type ultimateAdapter struct {
	caller
	path string
}

// request makes a call to a path with a body, or without one.
func (a *ultimateAdapter) request(ctx context.Context, path string, body any, send bool) (*upstream.Response, error) {
	header := bearer(a.Secrets["api_token"])
	header["Accept"], header["Content-Type"] = []string{"application/json"}, []string{"application/json"}
	return a.call(ctx, a.Endpoint+a.path+path, header, body, send)
}

// Send implements Adapter.
func (a *ultimateAdapter) Send(ctx context.Context, m Message) (Receipt, error) {
	kind := "plain"
	if m.Unicode {
		kind = "unicode"
	}
	data, err := a.data(a.request(ctx, "/sms/send", map[string]string{
		"recipient": strings.Join(each(m.To, international), ","), "sender_id": a.Settings["sender_id"], "type": kind,
		"message": m.Text,
	}, true))
	return accepted(text(data["status"]), data["uid"], err)
}

// CheckStatus implements StatusChecker. The vendor finds a message by its ID alone.
func (a *ultimateAdapter) CheckStatus(ctx context.Context, s PastSend) (Status, error) {
	if s.ID == "" {
		return Status{State: StateUnknown, Reason: ReasonIDUnknown}, nil
	}
	response, err := a.request(ctx, "/sms/"+url.PathEscape(s.ID), nil, false)
	if err == nil {
		values, status := members(response.Body)
		if status == "error" && strings.Contains(strings.ToLower(text(values["message"])), "not found") {
			return Status{State: StateNotFound}, nil
		}
	}
	data, err := a.data(response, err)
	return a.status(text(data["status"]), err)
}

// Balance implements Balancer.
func (a *ultimateAdapter) Balance(ctx context.Context) (string, error) {
	data, err := a.data(a.request(ctx, "/balance", nil, false))
	balance := text(data["remaining_balance"])
	if err == nil && balance == "" {
		err = a.fail(upstream.Unusable, "response without remaining_balance")
	}
	return balance, err
}

// quickSendPath is the path of the vendor's own API. White labels have other paths.
const quickSendPath = "/Client/api.php"

type quickSendAdapter struct{ caller }

// request calls a function of the API. An endpoint without a path gets the vendor's own.
func (a *quickSendAdapter) request(ctx context.Context, function string, body any,
	send bool) (*upstream.Response, error) {
	header, address := basic(a.Secrets["email"], a.Secrets["api_key"]), a.Endpoint
	header.Set("Accept", "application/json")
	if u, err := url.Parse(address); err == nil && u.Path == "" {
		address += quickSendPath
	}
	response, err := a.call(ctx, address+"?FUN="+function, header, body, send)
	if err != nil {
		return nil, err
	}
	return response, a.byWords(response)
}

// Send implements Adapter.
func (a *quickSendAdapter) Send(ctx context.Context, m Message) (Receipt, error) {
	if len(m.To) == 1 {
		return a.send(ctx, "SEND_SINGLE", map[string]any{"to": local(m.To[0]), "msg": m.Text})
	}
	return a.send(ctx, "SEND_BULK_SAME", map[string]any{"to": each(m.To, local), "msg": m.Text})
}

// SendDifferent implements DifferentSender.
func (a *quickSendAdapter) SendDifferent(ctx context.Context, messages []Message) (Receipt, error) {
	var list []map[string]string
	for _, m := range messages {
		list = append(list, map[string]string{"to": local(m.To[0]), "msg": m.Text})
	}
	return a.send(ctx, "SEND_BULK_DIFFERENT", map[string]any{"msg_list": list})
}

// send makes a call that sends. The vendor is known to accept without an ID and not to send: that is unusable.
func (a *quickSendAdapter) send(ctx context.Context, function string, request map[string]any) (Receipt, error) {
	request["senderID"] = a.Settings["sender_id"]
	values, err := a.read(a.request(ctx, function, request, true))
	return a.identified(text(values["status"]), values["id"], err)
}

// refusalWords are the words of a refusal in plain text or as status, known from clients of the vendor.
var refusalWords = pattern.New(`(?i)\b(error|fail(ed|ure)?|invalid|insufficient)\b`)

// read returns the members of a successful response. A failure can have HTTP status 200, as JSON or as plain text.
func (a *quickSendAdapter) read(response *upstream.Response, err error) (map[string]jsontext.Value, error) {
	if err != nil {
		return nil, err
	}
	values, status := members(response.Body)
	words := string(response.Body)
	switch {
	case strings.EqualFold(status, "success"):
		return values, nil
	case values != nil && status == "", refusalWords().MatchString(status):
		words = strings.Join([]string{status, text(values["error"]), text(values["message"])}, " ")
	case values != nil: // a status that clients do not know decides, whatever the message says
		words = status
	case strings.HasPrefix(strings.TrimSpace(words), "<"): // a page
		words = ""
	}
	if refusalWords().MatchString(words) || keyWords().MatchString(words) {
		return nil, a.byText(words)
	}
	return nil, a.fail(upstream.Unusable, string(response.Body))
}

// CheckCost implements CostChecker. The vendor does not document the types of the values, so all are read as text.
func (a *quickSendAdapter) CheckCost(ctx context.Context, to []string, message string) (Campaign, error) {
	request := map[string]any{"senderID": a.Settings["sender_id"], "to": each(to, local),
		"msg": message, "check_cost": true}
	response, err := a.request(ctx, "SEND_BULK_SAME", request, true)
	values, err := a.read(response, err)
	if err != nil {
		return Campaign{}, err
	}
	var campaign Campaign
	asText := json.UnmarshalFunc(func(value []byte, s *string) error { *s = text(value); return nil })
	err = json.Unmarshal(values["campaign_data"], &campaign, json.WithUnmarshalers(asText))
	if err != nil || campaign.Parts == nil {
		return Campaign{}, a.fail(upstream.Unusable, string(response.Body))
	}
	for i, p := range campaign.Parts {
		campaign.Parts[i].Unicode = flag(p.Unicode)
	}
	return campaign, nil
}

// Balance implements Balancer. The response is a number, as text or JSON, or an object with a number.
func (a *quickSendAdapter) Balance(ctx context.Context) (string, error) {
	response, err := a.request(ctx, "CHECK_BALANCE", struct{}{}, false)
	if err != nil {
		return "", err
	}
	body := strings.Trim(string(response.Body), "\" \r\n")
	values, _ := members(response.Body)
	for _, b := range []string{body, text(values["balance"]), text(values["Balance"]), text(values["credit"])} {
		if numberPattern().MatchString(b) {
			return b, nil
		}
	}
	_, err = a.read(response, nil)
	return "", cmp.Or(err, error(a.fail(upstream.Unusable, body)))
}
