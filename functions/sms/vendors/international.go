package vendors

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/arn"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"svcapi/shared/dynamo"
	"svcapi/shared/pattern"
	"svcapi/shared/upstream"
)

type twilioAdapter struct{ caller }

// request makes a call to a resource of the account: a send with a form, and a GET without one (nil). The result has
// the members of a successful response.
func (a *twilioAdapter) request(ctx context.Context, resource string, form any) (map[string]jsontext.Value, error) {
	account := a.Secrets["account_sid"]
	address := a.Endpoint + "/2010-04-01/Accounts/" + url.PathEscape(account) + resource
	header := basic(cmp.Or(a.Secrets["api_key_sid"], account), a.Secrets["auth_token"])
	response, err := a.call(ctx, address, header, form, form != nil)
	if err != nil {
		return nil, err
	}
	values, _ := members(response.Body)
	code, message := text(values["code"]), text(values["message"])
	if class := a.vendor.Codes[code].Class; class != "" {
		return nil, a.refusal(class, code, message, response.Header)
	}
	if err := a.byStatus(response, code); err != nil {
		return nil, err
	}
	switch {
	case code != "": // an error with the HTTP status of success
		return nil, a.refusal(upstream.Rejected, code, message, nil)
	case values == nil:
		return nil, a.fail(upstream.Unusable, string(response.Body))
	}
	return values, nil
}

// Send implements Adapter.
func (a *twilioAdapter) Send(ctx context.Context, m Message) (Receipt, error) {
	sender, from := a.Settings["sender_id"], "From"
	if strings.HasPrefix(sender, "MG") && len(sender) == 34 {
		from = "MessagingServiceSid"
	}
	message, err := a.request(ctx, "/Messages.json", url.Values{"To": m.To, from: {sender}, "Body": {m.Text}})
	receipt := Receipt{Status: text(message["status"]), ID: text(message["sid"])}
	switch {
	case err != nil:
		return Receipt{}, err
	case receipt.ID == "" || receipt.Status == "":
		return Receipt{}, a.fail(upstream.Unusable, "response without sid or status")
	case a.vendor.States[receipt.Status] == StateFailed: // the message exists and will not be sent
		return Receipt{}, a.refusal(upstream.Rejected, text(message["error_code"]), "message "+receipt.Status, nil)
	}
	return receipt, nil
}

// CheckStatus implements StatusChecker. Without its ID, CheckStatus searches for the message.
func (a *twilioAdapter) CheckStatus(ctx context.Context, s PastSend) (Status, error) {
	if s.ID == "" {
		return a.search(ctx, s)
	}
	message, err := a.request(ctx, "/Messages/"+url.PathEscape(s.ID)+".json", nil)
	if upstream.CodeOf(err) == "20404" {
		return Status{State: StateNotFound, Word: "20404"}, nil
	}
	return a.status(text(message["status"]), err)
}

// search compares the messages of the account that were created during the send, from a minute before its end to 15
// seconds, a difference of the clocks, after it. Any other number of them than one with the number and the text is
// inconclusive, and so is more than a page has: the list can lack a message, so that a search never proves its absence.
func (a *twilioAdapter) search(ctx context.Context, s PastSend) (Status, error) {
	from, to := s.Ended.Add(-time.Minute).UTC(), s.Ended.Add(10*time.Minute).UTC()
	query := url.Values{"PageSize": {"1000"}, "DateSent>": {from.Format(time.RFC3339)},
		"DateSent<": {to.Format(time.RFC3339)}}
	list, err := a.request(ctx, "/Messages.json?"+query.Encode(), nil)
	var found []map[string]jsontext.Value
	if err == nil && json.Unmarshal(list["messages"], &found) != nil {
		err = a.fail(upstream.Unusable, "response without messages")
	}
	found = slices.DeleteFunc(found, func(m map[string]jsontext.Value) bool {
		created, err := time.Parse(time.RFC1123Z, text(m["date_created"])) // RFC 2822
		return err != nil || created.Before(from) || created.After(s.Ended.Add(15*time.Second)) ||
			!s.IsTo(text(m["to"]), text(m["body"]))
	})
	switch {
	case err != nil:
		return Status{}, err
	case len(found) != 1 || text(list["next_page_uri"]) != "":
		return Status{State: StateUnknown, Reason: ReasonInconclusive}, nil
	}
	state, err := a.status(text(found[0]["status"]), nil)
	state.searched = true
	return state, err
}

// Balance implements Balancer.
func (a *twilioAdapter) Balance(ctx context.Context) (string, error) {
	values, err := a.request(ctx, "/Balance.json", nil)
	balance, err := a.balance(text(values["balance"]), err)
	return strings.TrimSpace(balance + " " + text(values["currency"])), err
}

var phoneNumber = pattern.New(`^\+?[0-9]+$`)

// OriginationIdentity returns the ARN of the origination identity in an integration's settings, in a region and in the
// account of a role, and "" for a phone number, whose ARN AWS alone knows. A sender ID is that of the recipients'
// country (Service Authorization Reference, AWS End User Messaging SMS and Voice V2, Resource types).
func OriginationIdentity(settings map[string]string, region string, role arn.ARN) string {
	id := settings["sender_id"]
	resource := "sender-id/" + id + "/LK"
	switch {
	case strings.HasPrefix(id, "arn:"):
		return id
	case phoneNumber().MatchString(id):
		return ""
	case strings.HasPrefix(id, "phone-"):
		resource = "phone-number/" + id
	case strings.HasPrefix(id, "pool-"):
		resource = "pool/" + id
	}
	return arn.ARN{Partition: role.Partition, Service: "sms-voice", Region: cmp.Or(settings["region"], region),
		AccountID: role.AccountID, Resource: resource}.String()
}

type awsAdapter struct {
	caller
	cfg aws.Config
}

// Send implements Adapter. The request is one of AWS's JSON protocol 1.0 (Smithy, "AWS JSON 1.0 protocol").
func (a *awsAdapter) Send(ctx context.Context, m Message) (Receipt, error) {
	cfg, secrets := a.cfg, a.Secrets
	cfg.Region = cmp.Or(a.Settings["region"], cfg.Region)
	if a.Endpoint != "" {
		cfg.BaseEndpoint = &a.Endpoint
	}
	if secrets["access_key_id"] != "" {
		cfg.Credentials = credentials.NewStaticCredentialsProvider(secrets["access_key_id"], secrets["secret_access_key"], "")
	}
	body, err := json.Marshal(map[string]string{
		"DestinationPhoneNumber": m.To[0], "OriginationIdentity": a.Settings["sender_id"], "MessageBody": m.Text,
		"MessageType": cmp.Or(a.Settings["message_type"], "TRANSACTIONAL"),
	}, json.Deterministic(true))
	if err != nil {
		return Receipt{}, a.fail(upstream.NotSent, err.Error())
	}
	r, err := dynamo.SignedRequest(ctx, cfg, "sms-voice", http.MethodPost, "/", http.Header{
		"Content-Type": {"application/x-amz-json-1.0"}, "X-Amz-Target": {"PinpointSMSVoiceV2.SendTextMessage"},
	}, body)
	if err != nil {
		return Receipt{}, a.fail(upstream.NotSent, err.Error())
	}
	response, err := a.Do(ctx, a.Integration.Vendor, &upstream.Request{
		Method: r.Method, URL: r.URL.String(), Header: r.Header, Body: body, Redact: a.Redact(), Send: true,
	})
	if err != nil {
		return Receipt{}, err
	}
	values, _ := members(response.Body)
	_, code, _ := strings.Cut(text(values["__type"]), "#")
	if class := a.vendor.Codes[code].Class; class != "" {
		return Receipt{}, a.refusal(class, code, cmp.Or(text(values["message"]), text(values["Message"])), nil)
	}
	return a.identified("accepted", values["MessageId"], a.byStatus(response, ""))
}
