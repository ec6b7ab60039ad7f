package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/google/uuid"
)

// Error codes of AWS.
const awsUnknownClient, awsInvalidSignature = "UnrecognizedClientException", "InvalidSignatureException"

var (
	awsNumber    = regexp.MustCompile(`^\+?[1-9][0-9]{1,18}$`)
	awsSignature = regexp.MustCompile(`^AWS4-HMAC-SHA256 Credential=([^/]+)/\d{8}/([^/]+)/sms-voice/aws4_request, SignedHeaders=([^,]+), Signature=[0-9a-f]{64}$`)
	awsTypes     = []string{"TRANSACTIONAL", "PROMOTIONAL"}

	awsUnknownOperation = awsError(http.StatusNotFound, "UnknownOperationException", "", nil)
)

// awsSecret returns the secret key of a project's access key, or of a key that the Lambda host gives a function.
func awsSecret(accessKeyID string) (string, bool) {
	if strings.HasPrefix(accessKeyID, "LOCAL") {
		return "local", true
	}
	return AWSSecretAccessKey, accessKeyID == AWSAccessKeyID
}

// endUserMessaging simulates AWS End User Messaging (pinpoint-sms-voice-v2): AWS JSON 1.0, signed requests.
func endUserMessaging() vendor {
	return vendor{
		name: "aws", accepted: []string{AWSAccessKeyID, AWSSecretAccessKey},
		routes: []route{{"POST /{$}", awsCall}, {"POST ", awsCall}}, unknown: awsUnknownOperation,
	}
}

func awsJSON(status int, value any) response {
	r := jsonResponse(status, value)
	r.media = "application/x-amz-json-1.0"
	return r
}

func awsError(status int, code, message string, more object) response {
	body := object{"__type": "com.amazonaws.pinpointsmsvoicev2#" + code, "Message": message}
	maps.Copy(body, more)
	return awsJSON(status, body)
}

func awsInvalid(field string) response {
	return awsError(http.StatusBadRequest, "ValidationException", "The request failed validation.",
		object{"Reason": "FIELD_VALIDATION_FAILED", "Fields": []object{{"Name": field, "Message": "is not valid"}}})
}

func awsCall(r *request) result {
	var in struct {
		DestinationPhoneNumber, OriginationIdentity, MessageBody, MessageType string
		TimeToLive                                                            *int
		DryRun                                                                bool
	}
	valid := r.json(&in)
	operation := "send"
	if in.DryRun {
		operation = "check_cost"
	}
	refused := awsError(http.StatusForbidden, awsUnknownClient, "The security token included in the request is invalid.", nil)
	code := awsSignatureError(r)
	return result{
		operation: operation, to: split(in.DestinationPhoneNumber),
		problems: []problem{
			{r.Header.Get("X-Amz-Target") != "PinpointSMSVoiceV2.SendTextMessage", awsUnknownOperation},
			{code == awsUnknownClient, refused},
			{code != "", awsError(http.StatusForbidden, code, "The request's signature is not valid.", nil)},
			{!valid, awsError(http.StatusBadRequest, "SerializationException", "", nil)},
			{!awsNumber.MatchString(in.DestinationPhoneNumber), awsInvalid("DestinationPhoneNumber")},
			{in.MessageBody == "" || utf8.RuneCountInString(in.MessageBody) > 1600, awsInvalid("MessageBody")},
			{in.MessageType != "" && !slices.Contains(awsTypes, in.MessageType), awsInvalid("MessageType")},
			{in.TimeToLive != nil && (*in.TimeToLive < 5 || *in.TimeToLive > 259_200), awsInvalid("TimeToLive")},
		},
		responses: responses{
			Accepted: awsJSON(http.StatusOK, object{"MessageId": uuid.NewString()}),
			Rejected: awsError(http.StatusBadRequest, "ConflictException", "The destination has opted out.",
				object{"Reason": "DESTINATION_PHONE_NUMBER_OPTED_OUT"}),
			CredentialsRefused: refused,
		},
	}
}

// awsSignatureError signs the request again and returns AWS's error code for its signature, "" for a valid one.
func awsSignatureError(r *request) string {
	m := awsSignature.FindStringSubmatch(r.Header.Get("Authorization"))
	if m == nil {
		return "IncompleteSignatureException"
	}
	key, region := m[1], m[2]
	secret, ok := awsSecret(key)
	if !ok {
		return awsUnknownClient
	}
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	if err != nil || time.Since(at).Abs() > 15*time.Minute {
		return awsInvalidSignature
	}
	again, err := http.NewRequestWithContext(r.Context(), r.Method, "http://"+r.Host+r.URL.RequestURI(), nil)
	if err != nil {
		return awsInvalidSignature
	}
	again.ContentLength = r.ContentLength
	for name := range strings.SplitSeq(m[3], ";") {
		if name != "host" && name != "content-length" { // the signer reads these two from the request
			again.Header[http.CanonicalHeaderKey(name)] = r.Header.Values(name)
		}
	}
	credentials := aws.Credentials{AccessKeyID: key, SecretAccessKey: secret, SessionToken: r.Header.Get("X-Amz-Security-Token")}
	sum := sha256.Sum256(r.body)
	err = v4.NewSigner().SignHTTP(r.Context(), credentials, again, hex.EncodeToString(sum[:]), "sms-voice", region, at)
	if err != nil || again.Header.Get("Authorization") != r.Header.Get("Authorization") {
		return awsInvalidSignature
	}
	return ""
}
