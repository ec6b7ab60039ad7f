package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/google/uuid"
)

// What the sandbox's AWS accepts as a project's own keys.
const (
	AWSAccessKeyID     = "AKIASANDBOX000000001"
	AWSSecretAccessKey = "aws-sandbox-secret-access-key"
)

var (
	awsNumber    = regexp.MustCompile(`^\+?[1-9][0-9]{1,18}$`)
	awsSignature = regexp.MustCompile(`^AWS4-HMAC-SHA256 Credential=([^/]+)/\d{8}/([^/]+)/sms-voice/aws4_request, SignedHeaders=([^,]+), Signature=[0-9a-f]{64}$`)
	awsTypes     = []string{"TRANSACTIONAL", "PROMOTIONAL"}
)

// awsSecret is the secret key of an access key: a project's own, or one of those that the local Lambda host gives to
// functions in place of a role.
func awsSecret(accessKeyID string) (string, bool) {
	if strings.HasPrefix(accessKeyID, "LOCAL") {
		return "local", true
	}
	return AWSSecretAccessKey, accessKeyID == AWSAccessKeyID
}

// endUserMessaging speaks AWS End User Messaging (pinpoint-sms-voice-v2): AWS JSON 1.0, signed requests.
func endUserMessaging() vendor {
	return vendor{
		name:     "aws",
		accepted: []string{AWSAccessKeyID, AWSSecretAccessKey},
		routes:   []route{{"POST /{$}", awsCall}, {"POST ", awsCall}},
		unknown:  awsError(http.StatusNotFound, "UnknownOperationException", "", nil),
	}
}

func awsJSON(status int, value any) reply {
	r := jsonReply(status, value)
	r.media = "application/x-amz-json-1.0"
	return r
}

func awsError(status int, code, message string, more object) reply {
	body := object{"__type": "com.amazonaws.pinpointsmsvoicev2#" + code, "Message": message}
	maps.Copy(body, more)
	return awsJSON(status, body)
}

func awsInvalid(field string) reply {
	return awsError(http.StatusBadRequest, "ValidationException", "The request failed validation.",
		object{"Reason": "FIELD_VALIDATION_FAILED", "Fields": []object{{"Name": field, "Message": "is not valid"}}})
}

func awsCall(r *request) exchange {
	var in struct {
		DestinationPhoneNumber, OriginationIdentity, MessageBody, MessageType string
		TimeToLive                                                            *int
		DryRun                                                                bool
	}
	valid := r.json(&in)
	ex := exchange{operation: "send"}
	if in.DryRun {
		ex.operation = "check_cost"
	}
	if in.DestinationPhoneNumber != "" {
		ex.to = []string{in.DestinationPhoneNumber}
	}
	refused := awsError(http.StatusForbidden, "UnrecognizedClientException", "The security token included in the request is invalid.", nil)
	switch code := awsSigned(r); {
	case r.Header.Get("X-Amz-Target") != "PinpointSMSVoiceV2.SendTextMessage":
		return ex.refuse(awsError(http.StatusNotFound, "UnknownOperationException", "", nil))
	case code == "UnrecognizedClientException":
		return ex.refuse(refused)
	case code != "":
		return ex.refuse(awsError(http.StatusForbidden, code, "The request's signature is not valid.", nil))
	case !valid:
		return ex.refuse(awsError(http.StatusBadRequest, "SerializationException", "", nil))
	case !awsNumber.MatchString(in.DestinationPhoneNumber):
		return ex.refuse(awsInvalid("DestinationPhoneNumber"))
	case in.MessageBody == "" || utf8.RuneCountInString(in.MessageBody) > 1600:
		return ex.refuse(awsInvalid("MessageBody"))
	case in.MessageType != "" && !slices.Contains(awsTypes, in.MessageType):
		return ex.refuse(awsInvalid("MessageType"))
	case in.TimeToLive != nil && (*in.TimeToLive < 5 || *in.TimeToLive > 259_200):
		return ex.refuse(awsInvalid("TimeToLive"))
	}
	ex.replies = map[Outcome]reply{
		Accepted: awsJSON(http.StatusOK, object{"MessageId": uuid.NewString()}),
		Rejected: awsError(http.StatusBadRequest, "ConflictException", "The destination has opted out.",
			object{"Reason": "DESTINATION_PHONE_NUMBER_OPTED_OUT"}),
		CredentialsRefused: refused,
	}
	return ex
}

// awsSigned checks the request's signature by making it again: "" when it is right, else AWS's code of the error.
func awsSigned(r *request) string {
	m := awsSignature.FindStringSubmatch(r.Header.Get("Authorization"))
	if m == nil {
		return "IncompleteSignatureException"
	}
	key, region := m[1], m[2]
	secret, ok := awsSecret(key)
	if !ok {
		return "UnrecognizedClientException"
	}
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	if err != nil || time.Since(at).Abs() > 15*time.Minute {
		return "InvalidSignatureException"
	}
	again, err := http.NewRequestWithContext(r.Context(), r.Method, "http://"+r.Host+r.URL.RequestURI(), nil)
	if err != nil {
		return "InvalidSignatureException"
	}
	for name := range strings.SplitSeq(m[3], ";") {
		if name == "content-length" {
			again.ContentLength, _ = strconv.ParseInt(r.Header.Get(name), 10, 64)
		} else if name != "host" {
			again.Header[http.CanonicalHeaderKey(name)] = r.Header.Values(name)
		}
	}
	if again.ContentLength == 0 {
		again.ContentLength = r.ContentLength
	}
	credentials := aws.Credentials{AccessKeyID: key, SecretAccessKey: secret, SessionToken: r.Header.Get("X-Amz-Security-Token")}
	sum := sha256.Sum256(r.body)
	err = v4.NewSigner().SignHTTP(r.Context(), credentials, again, hex.EncodeToString(sum[:]), "sms-voice", region, at)
	if err != nil || again.Header.Get("Authorization") != r.Header.Get("Authorization") {
		return "InvalidSignatureException"
	}
	return ""
}
