package vendors

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws/arn"

	"svcapi/test/must"
)

func TestEndUserMessaging(t *testing.T) {
	testResponses(t, "aws", []recorded{
		{"accepted", "V", 200, `{"MessageId":"a1b2"}`, "", Receipt{Status: "accepted", ID: "a1b2"}},
	})
}

// TestOriginationIdentity: the ARN that the role of the function needs a right on. Sources: AWS End User Messaging SMS
// API reference, SendTextMessage, OriginationIdentity; Service Authorization Reference, the ARNs of resource types.
func TestOriginationIdentity(t *testing.T) {
	role, err := arn.Parse("arn:aws-cn:iam::123456789012:role/svc-prod-SmsRole")
	must.Succeed(t, err)
	for id, want := range map[string]string{
		"Acme":             "arn:aws-cn:sms-voice:eu-west-1:123456789012:sender-id/Acme/LK",
		"phone-0a1b":       "arn:aws-cn:sms-voice:eu-west-1:123456789012:phone-number/phone-0a1b",
		"pool-0a1b":        "arn:aws-cn:sms-voice:eu-west-1:123456789012:pool/pool-0a1b",
		"+94771234567":     "",
		"94771234567":      "",
		"arn:aws:x:y:1:2a": "arn:aws:x:y:1:2a",
	} {
		if got := OriginationIdentity(map[string]string{"sender_id": id}, "eu-west-1", role); got != want {
			t.Errorf("%s: %q, want %q", id, got, want)
		}
	}
	elsewhere := OriginationIdentity(map[string]string{"sender_id": "Acme", "region": "eu-north-1"}, "eu-west-1", role)
	if want := "arn:aws-cn:sms-voice:eu-north-1:123456789012:sender-id/Acme/LK"; elsewhere != want {
		t.Errorf("%s, want %s", elsewhere, want)
	}
}
