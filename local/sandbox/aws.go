package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// Error codes of AWS.
const awsUnknownClient, awsInvalidSignature = "UnrecognizedClientException", "InvalidSignatureException"

var awsSignature = regexp.MustCompile(`^AWS4-HMAC-SHA256 Credential=([^/]+)/\d{8}/([^/]+)/sms-voice/aws4_request, ` +
	`SignedHeaders=([^,]+), Signature=[0-9a-f]{64}$`)

// awsSecret returns the secret key of a project's access key, or of a key that the Lambda host gives a function.
func awsSecret(accessKeyID string) (string, bool) {
	if strings.HasPrefix(accessKeyID, "LOCAL") {
		return "local", true
	}
	return Accounts["aws"]["secret_access_key"], accessKeyID == Accounts["aws"]["access_key_id"]
}

// awsSignatureError signs the request again and returns AWS's error code for its signature, "" for a valid one.
func awsSignatureError(r *received) string {
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
	credentials := aws.Credentials{AccessKeyID: key, SecretAccessKey: secret,
		SessionToken: r.Header.Get("X-Amz-Security-Token")}
	sum := sha256.Sum256(r.body)
	err = v4.NewSigner().SignHTTP(r.Context(), credentials, again, hex.EncodeToString(sum[:]), "sms-voice", region, at)
	if err != nil || again.Header.Get("Authorization") != r.Header.Get("Authorization") {
		return awsInvalidSignature
	}
	return ""
}
