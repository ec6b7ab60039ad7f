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

// notifyLK is Notify.lk's API v1: one recipient a call, no message ID, no documented form of errors.
func notifyLK() Vendor {
	return Vendor{
		Spec: upstream.Spec{
			Name: "notifylk", Title: "Notify.lk", Endpoint: "https://app.notify.lk",
			Settings: []upstream.Field{senderID},
			Secrets:  []upstream.Field{required("user_id", "user ID of the account"), apiKey},
		},
		Concurrency: unpublished,
		New:         func(c *upstream.Client, a upstream.Account) Adapter { return &notifyAdapter{caller{c, a}} },
	}
}

type notifyAdapter struct{ caller }

func (a *notifyAdapter) credentials() url.Values {
	return url.Values{"user_id": {a.Secrets["user_id"]}, "api_key": {a.Secrets["api_key"]}}
}

// notifyWords are the success that the vendor documents, and the refusals that its clients know.
var notifyWords = map[string]bool{"status success": true, "status error": false, "status failed": false}

// Send implements Adapter. Send posts a form, so that the key is not in the URL.
func (a *notifyAdapter) Send(ctx context.Context, m Message) (Receipt, error) {
	form := a.credentials()
	form.Set("sender_id", a.Settings["sender_id"])
	form.Set("to", international(m.To[0]))
	form.Set("message", m.Text)
	if m.Unicode {
		form.Set("type", "unicode")
	}
	response, err := a.call(ctx, a.Endpoint+"/api/v1/send", http.Header{}, form, true)
	values, err := a.read(notifyWords, response, err)
	return accepted(text(values["data"]), nil, err)
}

// Balance implements Balancer.
func (a *notifyAdapter) Balance(ctx context.Context) (string, error) {
	response, err := a.call(ctx, a.Endpoint+"/api/v1/status?"+a.credentials().Encode(), http.Header{}, nil, false)
	values, err := a.read(notifyWords, response, err)
	account, _ := members(values["data"])
	return a.balance(text(account["acc_balance"]), err)
}

// smsLenz is SMSlenz.lk's API, as clients of smslenz.lk/developers/api use it. The vendor's own page was not available.
func smsLenz() Vendor {
	return Vendor{
		Spec: upstream.Spec{
			Name: "smslenz", Title: "SMSlenz.lk", Endpoint: "https://smslenz.lk/api",
			Settings: []upstream.Field{senderID},
			Secrets:  []upstream.Field{required("user_id", "user ID of the account"), apiKey},
		},
		Concurrency: unpublished, Batch: 100,
		New: func(c *upstream.Client, a upstream.Account) Adapter { return &smsLenzAdapter{caller{c, a}} },
	}
}

type smsLenzAdapter struct{ caller }

// smsLenzWords are the values that clients of the vendor know.
var smsLenzWords = map[string]bool{"success true": true, "success false": false, "status error": false}

// post adds the account to the body, and returns the data of a successful response. The fields are known from clients
// only: each may be missing.
func (a *smsLenzAdapter) post(ctx context.Context, path string, request map[string]any,
	send bool) (map[string]jsontext.Value, error) {
	request["user_id"], request["api_key"] = a.Secrets["user_id"], a.Secrets["api_key"]
	response, err := a.call(ctx, a.Endpoint+path, http.Header{"Accept": {"application/json"}}, request, send)
	values, err := a.read(smsLenzWords, response, err)
	data, _ := members(values["data"])
	return data, err
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

// ultimateSMS is the API v3 of Ultimate SMS, the software of several gateways (text.lk/docs/send-sms; clients of
// dashboard.smsapi.lk and other installations). Each gateway has its own endpoint.
func ultimateSMS() Vendor {
	return ultimateVendor("", upstream.Spec{
		Name: "ultimatesms", Title: "Ultimate SMS (gateway of your choice)",
		Settings: []upstream.Field{
			senderID,
			required(upstream.EndpointSetting, "URL of the gateway's API, https, such as https://app.gateway.example/api/v3"),
		},
	})
}

// textLK is Text.lk's API v3 (text.lk/docs), an installation of Ultimate SMS.
func textLK() Vendor {
	return ultimateVendor("/api/v3", upstream.Spec{
		Name: "textlk", Title: "Text.lk", Endpoint: "https://app.text.lk", Settings: []upstream.Field{senderID},
	})
}

// ultimateVendor returns an installation, whose API has a path below the endpoint.
func ultimateVendor(path string, spec upstream.Spec) Vendor {
	spec.Secrets = []upstream.Field{required("api_token", "API token of the account")}
	return Vendor{
		Spec: spec, Concurrency: unpublished, Batch: 100,
		New: func(c *upstream.Client, a upstream.Account) Adapter {
			a.Endpoint += path
			return &ultimateAdapter{caller{c, a}}
		},
	}
}

type ultimateAdapter struct{ caller }

// request makes a call to a path with a body, or without one.
func (a *ultimateAdapter) request(ctx context.Context, path string, body any, send bool) (*upstream.Response, error) {
	header := bearer(a.Secrets["api_token"])
	header["Accept"], header["Content-Type"] = []string{"application/json"}, []string{"application/json"}
	return a.call(ctx, a.Endpoint+path, header, body, send)
}

// ultimateWords are the values of "status" that the vendor documents.
var ultimateWords = map[string]bool{"status success": true, "status error": false}

// data returns the data of a successful response. The vendor does not document the fields: each may be missing.
func (a *ultimateAdapter) data(response *upstream.Response, err error) (map[string]jsontext.Value, error) {
	values, err := a.read(ultimateWords, response, err)
	data, _ := members(values["data"])
	return data, err
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

// ultimateStates are the states of a message in lower case (clients of several installations).
var ultimateStates = map[string]State{
	"accepted": StateAccepted, "queued": StateAccepted, "pending": StateAccepted, "enroute": StateSent, "sent": StateSent,
	"delivered": StateDelivered, "undelivered": StateFailed, "failed": StateFailed, "rejected": StateFailed,
	"expired": StateFailed,
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
	return a.status(ultimateStates, text(data["status"]), err)
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

// quickSend is QuickSend.lk's HTTP API. The vendor documents few responses, so the adapter accepts several forms.
func quickSend() Vendor {
	return Vendor{
		Spec: upstream.Spec{
			Name: "quicksend", Title: "QuickSend.lk", Endpoint: "https://quicksend.lk" + quickSendPath,
			Settings: []upstream.Field{senderID, {
				Name: NativeCheckCost, Pattern: "^(true|false)$",
				Description: `true asks the vendor for cost estimates, false (default) does not; confirm first that its ` +
					`check_cost sends nothing`,
			}, {
				Name: upstream.EndpointSetting, Description: "URL of the API of a white label, https; without a path the path is " +
					quickSendPath,
			}},
			Secrets: []upstream.Field{required("email", "e-mail address of the account"), apiKey},
		},
		Concurrency: unpublished, Batch: 100,
		New: func(c *upstream.Client, a upstream.Account) Adapter { return &quickSendAdapter{caller{c, a}} },
	}
}

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
		if isNumber(b) {
			return b, nil
		}
	}
	_, err = a.read(response, nil)
	return "", cmp.Or(err, error(a.fail(upstream.Unusable, body)))
}
