package vendors

import (
	"cmp"
	"context"
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
