package vendors

import (
	"cmp"
	"context"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/arn"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/go-json-experiment/json"

	"svcapi/shared/dynamo"
	"svcapi/shared/pattern"
	"svcapi/shared/upstream"
)

// endUserMessaging is AWS End User Messaging (pinpoint-sms-voice-v2). A Managed integration sends with the function's
// role, a Manual (BYOK) one with the keys of the project.
func endUserMessaging(cfg aws.Config) Vendor {
	return Vendor{
		Spec: upstream.Spec{
			Name: "aws", Title: "AWS End User Messaging",
			Settings: []upstream.Field{
				required("sender_id", "origination identity: sender ID, phone number, pool, or an ARN of one"),
				{Name: "region", Description: "AWS region; the stack's own where it is empty"},
				{Name: "message_type", Description: "kind of message: TRANSACTIONAL (default) or PROMOTIONAL",
					Pattern: "^(TRANSACTIONAL|PROMOTIONAL)$"},
			},
			Secrets: []upstream.Field{
				required("access_key_id", "access key that may sms-voice:SendTextMessage"),
				required("secret_access_key", "its secret"),
			},
			ManagedAction: "sms-voice:SendTextMessage",
		},
		Pace:        20, // AWS End User Messaging quotas: SendTextMessage requests a second
		Concurrency: 32,
		New:         func(c *upstream.Client, a upstream.Account) Adapter { return &awsAdapter{caller{c, a}, cfg} },
	}
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
	return arn.ARN{
		Partition: role.Partition, Service: "sms-voice", Region: cmp.Or(settings["region"],
			region), AccountID: role.AccountID, Resource: resource,
	}.String()
}

type awsAdapter struct {
	caller
	cfg aws.Config
}

// awsCodes are the classes of AWS' common errors and of those of SendTextMessage.
var awsCodes = map[string]upstream.Class{
	"AccessDeniedException":               upstream.CredentialsRefused,
	"ExpiredTokenException":               upstream.CredentialsRefused,
	"IncompleteSignatureException":        upstream.CredentialsRefused,
	"InvalidSignatureException":           upstream.CredentialsRefused,
	"MissingAuthenticationTokenException": upstream.CredentialsRefused,
	"NotAuthorized":                       upstream.CredentialsRefused,
	"SignatureDoesNotMatch":               upstream.CredentialsRefused,
	"UnrecognizedClientException":         upstream.CredentialsRefused,
	"ConflictException":                   upstream.Rejected,
	"ResourceNotFoundException":           upstream.AccountRefused, // the origination identity
	"ServiceQuotaExceededException":       upstream.AccountRefused, // such as the monthly spend limit
	"ThrottlingException":                 upstream.TooFast,
	"ValidationException":                 upstream.Rejected,
	"InternalServerException":             upstream.Unusable,
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
	if class := awsCodes[code]; class != "" {
		return Receipt{}, a.refusal(class, code, cmp.Or(text(values["message"]), text(values["Message"])), nil)
	}
	if err := a.byStatus(response, ""); err != nil {
		return Receipt{}, err
	}
	id := text(values["MessageId"])
	if id == "" {
		return Receipt{}, a.fail(upstream.Unusable, "response without a message ID")
	}
	return Receipt{Status: "accepted", ID: id}, nil
}
