// Package secrets plays AWS Secrets Manager on a laptop: its wire format (AWS JSON 1.1), its errors and its versions,
// for the calls and the members that the product and its command line send, and which KMS key a version needs. The
// server refuses all others. Secrets are in memory and end with the server.
package secrets

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/smithy-go"
	"github.com/google/uuid"
)

// Limits of Secrets Manager (user guide, "AWS Secrets Manager quotas"; API reference, DeleteSecret, PutSecretValue).
const (
	maxValue       = 65536 // bytes
	recoveryWindow = 30    // days
	maxVersions    = 100
	youngVersion   = 24 * time.Hour // Secrets Manager removes no younger version
	// The pages of ListSecrets and ListSecretVersionIds, which may have fewer entries than MaxResults.
	pageSize, versionPage = 2, 10
)

const (
	current  = "AWSCURRENT"
	previous = "AWSPREVIOUS"
)

// managedKey is the name of the key aws/secretsmanager in responses of ListSecretVersionIds. All identities of the
// account may use this key through Secrets Manager (API reference, UpdateSecret, KmsKeyId).
const managedKey = "DefaultEncryptionKey"

var (
	namePattern  = regexp.MustCompile(`^[A-Za-z0-9/_+=.@-]{1,512}$`)
	tokenPattern = regexp.MustCompile(`^[A-Za-z0-9-]{32,64}$`)
	// scopePattern matches the access key and the region of a signature's credential scope.
	scopePattern = regexp.MustCompile(`^AWS4-HMAC-SHA256 Credential=([^/]+)/\d{8}/([^/]+)/secretsmanager/aws4_request`)
)

// Server is a running endpoint with its secrets. Its Close ends the server and its connections.
type Server struct {
	*http.Server
	URL string // the base address

	mu      sync.Mutex
	secrets map[string]*secret  // by name
	rights  map[string][]string // KMS rights by access key
	calls   map[string]func(*request) (any, error)
}

// Limit replaces the KMS rights of the identity that signs with an access key by rights such as "kms:Decrypt KEY_ARN".
// An identity without a limit may use every key.
func (s *Server) Limit(accessKeyID string, rights ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rights[accessKeyID] = append([]string{}, rights...)
}

// Start listens on a free port of 127.0.0.1.
func Start() (*Server, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("secrets endpoint: %w", err)
	}
	s := &Server{URL: "http://" + listener.Addr().String(), secrets: map[string]*secret{}, rights: map[string][]string{}}
	s.calls = map[string]func(*request) (any, error){
		"CreateSecret":             s.create,
		"ListSecrets":              s.list,
		"GetSecretValue":           on(s.live, (*secret).get),
		"PutSecretValue":           on(s.live, (*secret).put),
		"UpdateSecret":             on(s.live, (*secret).update),
		"UpdateSecretVersionStage": on(s.live, (*secret).updateStage),
		"ListSecretVersionIds":     on(s.find, (*secret).list), // has no InvalidRequestException (API reference)
		"RestoreSecret":            on(s.find, (*secret).restore),
		"DeleteSecret":             on(s.find, (*secret).delete),
	}
	s.Server = &http.Server{Handler: http.HandlerFunc(s.serve), ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = s.Serve(listener) }()
	return s, nil
}

type version struct {
	id, value string
	created   time.Time
	keys      []string // each of them decrypts the version
}

// secret holds its versions, the oldest first; a secret without a value has none.
type secret struct {
	arn, name string
	key       string            // encrypts new versions
	deletion  time.Time         // zero: not scheduled for deletion
	stages    map[string]string // version IDs by stage
	versions  []version
}

// version returns the version with an ID, else the one with a stage; nil when there is none.
func (s *secret) version(id, stage string) *version {
	for i := range s.versions {
		if v := &s.versions[i]; v.id == cmp.Or(id, s.stages[stage]) {
			return v
		}
	}
	return nil
}

// stagesOf returns the stages of a version. A version without a stage is deprecated.
func (s *secret) stagesOf(id string) []string {
	return slices.DeleteFunc([]string{current, previous}, func(stage string) bool { return s.stages[stage] != id })
}

// move moves AWSCURRENT to a version, and AWSPREVIOUS to the version that had AWSCURRENT (API reference,
// UpdateSecretVersionStage).
func (s *secret) move(id string) {
	if before := s.stages[current]; before != id {
		s.stages = map[string]string{current: id, previous: before}
	}
}

// on returns a call that concerns the secret that find finds.
func on(find func(id string) (*secret, error), call func(*secret, *request) (any, error)) func(*request) (any, error) {
	return func(in *request) (any, error) {
		found, err := find(in.SecretID)
		if err != nil {
			return nil, err
		}
		return call(found, in)
	}
}

// request is the union of the calls' inputs. The emulator stores no description, and encrypts nothing: only a caller
// with the rights on a version's key gets the version.
type request struct {
	Name, SecretID, Description string
	KmsKeyID                    *string
	ClientRequestToken          string
	SecretString                *string
	VersionID, VersionStage     string
	MoveToVersionID             string
	RemoveFromVersionID         string
	NextToken                   string
	IncludePlannedDeletion      bool
	IncludeDeprecated           bool
	Filters                     []struct {
		Key    string
		Values []string
	}

	region  string
	limited bool
	rights  []string // KMS rights of a limited caller
}

// may reports whether the caller has a KMS right on one of the keys.
func (r *request) may(action string, keys ...string) bool {
	return !r.limited || slices.ContainsFunc(keys, func(key string) bool {
		return key == managedKey || slices.Contains(r.rights, action+" "+key)
	})
}

// key returns the key that the request names, else the other key. The empty text names the key aws/secretsmanager, too.
func (r *request) key(other string) string {
	switch {
	case r.KmsKeyID == nil:
		return other
	case *r.KmsKeyID == "" || *r.KmsKeyID == "alias/aws/secretsmanager":
		return managedKey
	}
	return *r.KmsKeyID
}

// errKMS is the error for a caller without a right on the key (AWS re:Post, "secrets-manager-cross-account-key").
var errKMS = fail("AccessDeniedException", "Access to KMS is not allowed")

// serve executes one call.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	w.Header().Set("X-Amzn-Requestid", uuid.NewString())
	out, err := s.call(r)
	if err != nil {
		failure, _ := errors.AsType[smithy.APIError](err) // every error of a call is one of fail
		w.Header().Set("X-Amzn-Errortype", failure.ErrorCode())
		w.WriteHeader(http.StatusBadRequest) // the status of every error here
		out = map[string]any{"__type": failure.ErrorCode(), "Message": failure.ErrorMessage()}
	}
	_ = json.NewEncoder(w).Encode(out)
}

func fail(code, message string) *smithy.GenericAPIError {
	return &smithy.GenericAPIError{Code: code, Message: message}
}

func notFound(message string) error     { return fail("ResourceNotFoundException", message) }
func exists(message string) error       { return fail("ResourceExistsException", message) }
func badParameter(message string) error { return fail("InvalidParameterException", message) }
func badRequest(message string) error   { return fail("InvalidRequestException", message) }

func (s *Server) call(r *http.Request) (any, error) {
	name, ok := strings.CutPrefix(r.Header.Get("X-Amz-Target"), "secretsmanager.")
	call := s.calls[name]
	if !ok || call == nil || r.Method != http.MethodPost {
		return nil, fail("UnknownOperationException", "The operation is not known: "+name)
	}
	authorization := r.Header.Get("Authorization")
	if authorization == "" {
		return nil, fail("MissingAuthenticationTokenException", "Missing Authentication Token")
	}
	scope := scopePattern.FindStringSubmatch(authorization)
	if scope == nil {
		return nil, fail("IncompleteSignatureException", "Credential should be scoped to correct service: 'secretsmanager'.")
	}
	in := request{region: scope[2]}
	body := json.NewDecoder(io.LimitReader(r.Body, 1<<20))
	body.DisallowUnknownFields()
	if err := body.Decode(&in); err != nil {
		return nil, badParameter("The local endpoint does not know this body: " + err.Error())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	in.rights, in.limited = s.rights[scope[1]]
	return call(&in)
}

// find returns the secret with a name, an ARN, or an ARN without its random end.
func (s *Server) find(id string) (*secret, error) {
	if id == "" {
		return nil, badParameter("You must provide a value for the SecretId parameter.")
	}
	for _, found := range s.secrets {
		if found.name == id || found.arn == id || found.arn[:len(found.arn)-len("-XXXXXX")] == id {
			return found, nil
		}
	}
	return nil, notFound("Secrets Manager can't find the specified secret.")
}

// live is find without the secrets that are scheduled for deletion.
func (s *Server) live(id string) (*secret, error) {
	found, err := s.find(id)
	if err == nil && !found.deletion.IsZero() {
		return nil, badRequest("You can't perform this operation on the secret because it was marked for deletion.")
	}
	return found, err
}

func (s *Server) create(in *request) (any, error) {
	if !namePattern.MatchString(in.Name) {
		return nil, badParameter("Invalid name. Must be a valid name containing alphanumeric characters, or any of the " +
			"following: -/_+=.@!")
	}
	if found := s.secrets[in.Name]; found != nil {
		if !found.deletion.IsZero() {
			return nil, badRequest("You can't create this secret because a secret with this name is already scheduled for " +
				"deletion.")
		}
		if v := found.version(in.ClientRequestToken, ""); v == nil || in.SecretString == nil || v.value != *in.SecretString {
			return nil, exists("The operation failed because the secret " + in.Name + " already exists.")
		}
		return found.add(in)
	}
	created := &secret{
		name: in.Name, arn: fmt.Sprintf("arn:aws:secretsmanager:%s:000000000000:secret:%s-%s", in.region,
			in.Name, rand.Text()[:6]),
		key: in.key(managedKey),
	}
	out, err := map[string]any{"ARN": created.arn, "Name": created.name}, error(nil)
	if in.SecretString != nil {
		out, err = created.add(in)
	}
	if err == nil {
		s.secrets[in.Name] = created
	}
	return out, err
}

func (s *secret) put(in *request) (any, error) {
	if in.SecretString == nil {
		return nil, badRequest("You must provide either SecretString or SecretBinary.")
	}
	return s.add(in)
}

func (s *secret) get(in *request) (any, error) {
	v, asked := s.version(in.VersionID, cmp.Or(in.VersionStage, current)), cmp.Or(in.VersionID, in.VersionStage, current)
	if v == nil {
		return nil, notFound("Secrets Manager can't find the specified secret value for " + asked)
	}
	if in.VersionStage != "" && s.version("", in.VersionStage) != v {
		return nil, badRequest("You provided a VersionStage that is not associated to the provided VersionId.")
	}
	if !in.may("kms:Decrypt", v.keys...) {
		return nil, errKMS
	}
	out := s.result(v)
	out["CreatedDate"], out["SecretString"] = epoch(v.created), v.value
	return out, nil
}

// updateStage moves AWSCURRENT from the version that has it (API reference, UpdateSecretVersionStage).
func (s *secret) updateStage(in *request) (any, error) {
	switch {
	case in.VersionStage != current:
		return nil, badParameter("The local endpoint moves AWSCURRENT only.")
	case s.version(in.MoveToVersionID, "") == nil:
		return nil, notFound("Secrets Manager can't find the specified secret version.")
	case in.RemoveFromVersionID != s.stages[current] && in.MoveToVersionID != s.stages[current]:
		return nil, badParameter("The parameter RemoveFromVersionId must name the version that AWSCURRENT is attached to.")
	}
	s.move(in.MoveToVersionID)
	return map[string]any{"ARN": s.arn, "Name": s.name}, nil
}

// update sets the key of new versions. The labelled versions can then be read with the new key, too, and still with the
// previous one; without kms:Decrypt on the previous key or kms:Encrypt on the new one they stay as they are, and the
// call succeeds. A new value is a version under the new key alone (user guide, "Change the encryption key for an AWS
// Secrets Manager secret"; API reference, UpdateSecret).
func (s *secret) update(in *request) (any, error) {
	key := in.key(s.key)
	switch {
	case in.SecretString != nil && s.version(in.ClientRequestToken, "") != nil && in.ClientRequestToken != "":
		return nil, exists("A resource with the ID you requested already exists.")
	case in.SecretString != nil && (!in.encrypts(key) || !in.may("kms:Encrypt", key)):
		return nil, errKMS
	}
	for i := range s.versions {
		v := &s.versions[i]
		if len(s.stagesOf(v.id)) > 0 && !slices.Contains(v.keys, key) && in.may("kms:Decrypt", v.keys...) &&
			in.may("kms:Encrypt", key) {
			v.keys = append(v.keys, key)
		}
	}
	s.key = key
	if in.SecretString == nil {
		return map[string]any{"ARN": s.arn, "Name": s.name}, nil
	}
	out, err := s.add(in)
	delete(out, "VersionStages")
	return out, err
}

// encrypts reports whether the caller may write a version under a key (user guide, "Secret encryption and decryption").
func (r *request) encrypts(key string) bool {
	return r.may("kms:GenerateDataKey", key) && r.may("kms:Decrypt", key)
}

// list returns the versions with their keys, the deprecated ones only where the caller includes them (API reference,
// ListSecretVersionIds).
func (s *secret) list(in *request) (any, error) {
	versions := []map[string]any{}
	for _, v := range s.versions {
		if stages := s.stagesOf(v.id); len(stages) > 0 || in.IncludeDeprecated {
			versions = append(versions, map[string]any{
				"VersionId": v.id, "VersionStages": stages, "CreatedDate": epoch(v.created), "KmsKeyIds": v.keys,
			})
		}
	}
	from, _ := strconv.Atoi(in.NextToken) // empty for the first page
	end := min(from+versionPage, len(versions))
	out := map[string]any{"ARN": s.arn, "Name": s.name, "Versions": versions[min(from, end):end]}
	if end < len(versions) {
		out["NextToken"] = strconv.Itoa(end)
	}
	return out, nil
}

// list returns a page of the secrets whose names begin with one of the filter's values.
func (s *Server) list(in *request) (any, error) {
	if len(in.Filters) != 1 || in.Filters[0].Key != "name" || len(in.Filters[0].Values) == 0 {
		return nil, badParameter("The local endpoint knows one filter, by name.")
	}
	page, last := []map[string]any{}, ""
	for _, name := range slices.Sorted(maps.Keys(s.secrets)) {
		found := s.secrets[name]
		named := slices.ContainsFunc(in.Filters[0].Values,
			func(prefix string) bool { return strings.HasPrefix(name, prefix) })
		if !named || name <= in.NextToken || !found.deletion.IsZero() && !in.IncludePlannedDeletion {
			continue
		}
		if len(page) == pageSize {
			return map[string]any{"SecretList": page, "NextToken": last}, nil
		}
		entry := map[string]any{"ARN": found.arn, "Name": name}
		if found.key != managedKey {
			entry["KmsKeyId"] = found.key
		}
		if !found.deletion.IsZero() {
			entry["DeletedDate"] = epoch(found.deletion)
		}
		page, last = append(page, entry), name
	}
	return map[string]any{"SecretList": page}, nil
}

func (s *secret) delete(*request) (any, error) {
	if !s.deletion.IsZero() {
		return nil, badRequest("You tried to perform the operation on a secret that's currently marked deleted.")
	}
	s.deletion = time.Now().AddDate(0, 0, recoveryWindow)
	return map[string]any{"ARN": s.arn, "Name": s.name, "DeletionDate": epoch(s.deletion)}, nil
}

func (s *secret) restore(*request) (any, error) {
	s.deletion = time.Time{}
	return map[string]string{"ARN": s.arn, "Name": s.name}, nil
}

// add makes a version of the request's value the current one. A repeat with the same token and value changes nothing
// and moves no stage. Where 100 versions exist, add removes deprecated ones that are a day old, and fails where there
// are none (API reference, PutSecretValue).
func (s *secret) add(in *request) (map[string]any, error) {
	if len(*in.SecretString) > maxValue {
		return nil, badParameter(fmt.Sprintf("The secret value must have length less than or equal to %d.", maxValue))
	}
	if in.ClientRequestToken != "" && !tokenPattern.MatchString(in.ClientRequestToken) {
		return nil, badParameter("ClientRequestToken must be 32-64 characters long.")
	}
	if v := s.version(in.ClientRequestToken, ""); v != nil {
		if v.value != *in.SecretString {
			return nil, exists("A resource with the ID you requested already exists.")
		}
		return s.result(v), nil
	}
	if !in.encrypts(s.key) {
		return nil, errKMS
	}
	if len(s.versions) >= maxVersions {
		s.versions = slices.DeleteFunc(s.versions, func(v version) bool {
			return len(s.stagesOf(v.id)) == 0 && time.Since(v.created) > youngVersion
		})
	}
	if len(s.versions) >= maxVersions {
		return nil, fail("LimitExceededException", "The secret has too many versions.")
	}
	v := version{cmp.Or(in.ClientRequestToken, uuid.NewString()), *in.SecretString, time.Now(), []string{s.key}}
	s.versions = append(s.versions, v)
	s.move(v.id)
	return s.result(&v), nil
}

func (s *secret) result(v *version) map[string]any {
	return map[string]any{"ARN": s.arn, "Name": s.name, "VersionId": v.id, "VersionStages": s.stagesOf(v.id)}
}

// epoch returns a time as AWS JSON writes it: seconds with decimals.
func epoch(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }
