package vendors

import (
	"context"
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"svcapi/shared/pattern"
	"svcapi/shared/upstream"
)

// quickSendPath is the path of the vendor's own API. White labels have other paths.
const quickSendPath = "/Client/api.php"

// quickSend is QuickSend.lk's HTTP API. The vendor documents few responses, so the adapter accepts several forms.
func quickSend() Vendor {
	return Vendor{
		Spec: upstream.Spec{
			Name: "quicksend", Title: "QuickSend.lk", Endpoint: "https://quicksend.lk" + quickSendPath,
			Settings: []upstream.Field{senderID, unitPrice, {
				Name:        NativeCheckCost,
				Description: `true asks the vendor for cost estimates, false (default) does not; confirm first that its check_cost sends nothing`,
				Pattern:     "^(true|false)$",
			}, {
				Name: upstream.EndpointSetting, Description: "URL of the API of a white label, https; without a path the path is " + quickSendPath,
			}},
			Secrets: []upstream.Field{
				{Name: "email", Description: "e-mail address of the account", Required: true},
				{Name: "api_key", Description: "API key of the account", Required: true},
			},
		},
		Concurrency: unpublished, Batch: 100,
		New: func(c *upstream.Client, a upstream.Account) Adapter {
			return &quickSendAdapter{caller{"quicksend", c, a}}
		},
	}
}

type quickSendAdapter struct{ caller }

// url returns the URL of the API: the endpoint, with the vendor's own path where the endpoint has none.
func (a *quickSendAdapter) url() string {
	if u, err := url.Parse(a.account.Endpoint); err == nil && u.Path == "" {
		return a.account.Endpoint + quickSendPath
	}
	return a.account.Endpoint
}

func (a *quickSendAdapter) call(ctx context.Context, function string, body any, send bool) (*upstream.Response, error) {
	key := base64.StdEncoding.EncodeToString([]byte(a.account.Secrets["email"] + ":" + a.account.Secrets["api_key"]))
	header := http.Header{"Accept": {"application/json"}, "Authorization": {"Basic " + key}}
	response, err := a.postJSON(ctx, a.url()+"?FUN="+function, "", header, body, send)
	if err != nil {
		return nil, err
	}
	return response, a.byWords(response)
}

// quickSendRequest is the union of the calls' bodies.
type quickSendRequest struct {
	SenderID  string             `json:"senderID"`
	To        any                `json:"to,omitzero"` // a number, or a list of numbers
	Message   string             `json:"msg,omitzero"`
	CheckCost bool               `json:"check_cost,omitzero"`
	Messages  []quickSendMessage `json:"msg_list,omitzero"`
}

type quickSendMessage struct {
	To      string `json:"to"`
	Message string `json:"msg"`
}

// Send implements Adapter.
func (a *quickSendAdapter) Send(ctx context.Context, m Message) (Receipt, error) {
	return a.send(ctx, "SEND_SINGLE", quickSendRequest{To: local(m.To), Message: m.Text})
}

// SendSame implements SameSender.
func (a *quickSendAdapter) SendSame(ctx context.Context, to []string, m Message) (Receipt, error) {
	return a.send(ctx, "SEND_BULK_SAME", quickSendRequest{To: each(to, local), Message: m.Text})
}

// SendDifferent implements DifferentSender.
func (a *quickSendAdapter) SendDifferent(ctx context.Context, messages []Message) (Receipt, error) {
	list := make([]quickSendMessage, len(messages))
	for i, m := range messages {
		list[i] = quickSendMessage{local(m.To), m.Text}
	}
	return a.send(ctx, "SEND_BULK_DIFFERENT", quickSendRequest{Messages: list})
}

// send makes a call that sends. The vendor is known to accept without an ID and not to send: that is unusable.
func (a *quickSendAdapter) send(ctx context.Context, function string, request quickSendRequest) (Receipt, error) {
	request.SenderID = a.account.Settings["sender_id"]
	values, err := a.read(a.call(ctx, function, request, true))
	if err != nil {
		return Receipt{}, err
	}
	id := text(values["id"])
	if id == "" {
		return Receipt{}, a.fail(upstream.Unusable, "accepted without an id")
	}
	return Receipt{Status: text(values["status"]), ID: id}, nil
}

// refusalWords are the words of a refusal in plain text or as status, known from clients of the vendor.
var refusalWords = pattern.New(`(?i)\b(error|fail(ed|ure)?|invalid|insufficient)\b`)

// read returns the members of a successful response. A failure can have HTTP status 200, as JSON or as plain text.
func (a *quickSendAdapter) read(response *upstream.Response, err error) (map[string]jsontext.Value, error) {
	if err != nil {
		return nil, err
	}
	var values map[string]jsontext.Value
	words := string(response.Body)
	parsed := json.Unmarshal(response.Body, &values) == nil
	if parsed {
		status := text(values["status"])
		if strings.EqualFold(status, "success") {
			return values, nil
		}
		words = status // a status that clients do not know decides, whatever the message says
		if status == "" || refusalWords().MatchString(status) {
			words = strings.Join([]string{status, text(values["error"]), text(values["message"])}, " ")
		}
	}
	page := !parsed && strings.HasPrefix(strings.TrimSpace(words), "<")
	if !page && (refusalWords().MatchString(words) || keyWords().MatchString(words)) {
		return nil, a.byText(words)
	}
	return nil, a.fail(upstream.Unusable, string(response.Body))
}

// CheckCost implements CostChecker. The vendor does not document the types of the values, so all are read as text.
func (a *quickSendAdapter) CheckCost(ctx context.Context, to []string, message string) (Campaign, error) {
	request := quickSendRequest{SenderID: a.account.Settings["sender_id"], To: each(to, local), Message: message, CheckCost: true}
	response, err := a.call(ctx, "SEND_BULK_SAME", request, true)
	values, err := a.read(response, err)
	if err != nil {
		return Campaign{}, err
	}
	var data map[string]jsontext.Value
	var parts []map[string]jsontext.Value
	if json.Unmarshal(values["campaign_data"], &data) != nil || json.Unmarshal(data["sms_msg_data"], &parts) != nil {
		return Campaign{}, a.fail(upstream.Unusable, string(response.Body))
	}
	campaign := Campaign{
		Method: text(data["campaign_method"]), Type: text(data["campaign_type"]), Sender: text(data["sender_id"]),
		Cost: text(data["campaign_total_cost"]), Numbers: text(data["campaign_total_numbers"]), Parts: []CampaignMessage{},
	}
	for _, p := range parts {
		campaign.Parts = append(campaign.Parts, CampaignMessage{
			Message: text(p["msg"]), Unicode: flag(p["unicode"]), Size: text(p["msg_size"]), PerSMS: text(p["per_sms_cost"]), Cost: text(p["msg_cost"]),
		})
	}
	return campaign, nil
}

// Balance implements Balancer. The response is a number, as text or JSON, or an object with a number.
func (a *quickSendAdapter) Balance(ctx context.Context) (string, error) {
	response, err := a.call(ctx, "CHECK_BALANCE", struct{}{}, false)
	if err != nil {
		return "", err
	}
	body := strings.TrimSpace(string(response.Body))
	var value jsontext.Value
	if json.Unmarshal(response.Body, &value) != nil {
		value = nil
	}
	values, _ := members(response.Body)
	for _, b := range []string{body, text(value), text(values["balance"]), text(values["Balance"]), text(values["credit"])} {
		if isNumber(b) {
			return b, nil
		}
	}
	if _, err := a.read(response, nil); err != nil {
		return "", err
	}
	return "", a.fail(upstream.Unusable, body)
}
