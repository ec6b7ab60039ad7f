package vendors

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/arn"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/pinpointsmsvoicev2"
	"github.com/aws/aws-sdk-go-v2/service/pinpointsmsvoicev2/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

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

// Send implements Adapter. The library neither repeats the request nor opens connections of its own.
func (a *awsAdapter) Send(ctx context.Context, m Message) (Receipt, error) {
	settings, secrets := a.Settings, a.Secrets
	sender := a.Sender(a.Integration.Vendor, a.Redact())
	client := pinpointsmsvoicev2.NewFromConfig(a.cfg, func(o *pinpointsmsvoicev2.Options) {
		o.HTTPClient = sender
		o.Retryer = aws.NopRetryer{}
		o.Region = cmp.Or(settings["region"], o.Region)
		if a.Endpoint != "" {
			o.BaseEndpoint = &a.Endpoint
		}
		if secrets["access_key_id"] != "" {
			o.Credentials = credentials.NewStaticCredentialsProvider(secrets["access_key_id"], secrets["secret_access_key"], "")
		}
	})
	kind := cmp.Or(types.MessageType(settings["message_type"]), types.MessageTypeTransactional)
	out, err := client.SendTextMessage(ctx, &pinpointsmsvoicev2.SendTextMessageInput{
		DestinationPhoneNumber: &m.To[0], OriginationIdentity: aws.String(settings["sender_id"]), MessageBody: &m.Text,
		MessageType: kind,
	})
	if err != nil {
		return Receipt{}, a.classify(sender, err)
	}
	if aws.ToString(out.MessageId) == "" {
		return Receipt{}, a.fail(upstream.Unusable, "response without a message ID")
	}
	return Receipt{Status: "accepted", ID: *out.MessageId}, nil
}

// classify returns the class of the library's error. The error of the sender comes first: after the end of the context
// the library returns a cancellation instead, which does not show whether a byte left.
func (a *awsAdapter) classify(sender *upstream.Sender, err error) error {
	made, failed := sender.Last()
	var response *smithyhttp.ResponseError
	var named smithy.APIError
	switch {
	case failed != nil:
		return failed
	case !made:
		return a.fail(upstream.NotSent, err.Error()) // credentials or endpoint could not be resolved, or no time was left
	case errors.As(err, &named) && awsCodes[named.ErrorCode()] != "":
		return a.refusal(awsCodes[named.ErrorCode()], named.ErrorCode(), named.ErrorMessage(), nil)
	case !errors.As(err, &response):
		return a.fail(upstream.Unusable, err.Error())
	}
	byStatus := a.byStatus(&upstream.Response{Status: response.HTTPStatusCode(), Body: []byte(err.Error())}, "")
	return cmp.Or(byStatus, error(a.fail(upstream.Unusable, err.Error())))
}
