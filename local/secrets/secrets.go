// Package secrets plays AWS Secrets Manager on a laptop: its wire format (AWS JSON 1.1), its errors and its versions,
// for the calls that the product and its command line make. Secrets live in memory and end with the server.
package secrets

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
)

// Limits of Secrets Manager's API reference.
const (
	maxValue     = 65536 // bytes
	maxResults   = 100
	windowMin    = 7 // days
	windowMax    = 30
	windowNormal = 30
)

const (
	current  = "AWSCURRENT"
	previous = "AWSPREVIOUS"
)

var (
	nameForm  = regexp.MustCompile(`^[A-Za-z0-9/_+=.@-]{1,512}$`)
	tokenForm = regexp.MustCompile(`^[A-Za-z0-9-]{32,64}$`)
	// scopeForm takes the region from a signature's credential scope.
	scopeForm = regexp.MustCompile(`^AWS4-HMAC-SHA256 Credential=[^/]+/\d{8}/([^/]+)/secretsmanager/aws4_request`)
)

// Server is a running endpoint.
type Server struct {
	// URL is its base address.
	URL string

	http *http.Server
}

// Start listens on a free port of 127.0.0.1.
func Start() (*Server, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("secrets endpoint: %w", err)
	}
	s := &Server{
		URL:  "http://" + listener.Addr().String(),
		http: &http.Server{Handler: newStore(), ReadHeaderTimeout: 10 * time.Second},
	}
	go func() { _ = s.http.Serve(listener) }()
	return s, nil
}

// Close ends the server and its connections. The secrets are gone.
func (s *Server) Close() error { return s.http.Close() }

type version struct {
	id      string
	text    *string
	binary  []byte
	stages  []string
	created time.Time
}

type secret struct {
	arn, name, description string
	created, changed       time.Time
	deletion               time.Time // zero: not scheduled for deletion
	versions               []*version
}

func (s *secret) staged(stage string) *version {
	for _, v := range s.versions {
		if slices.Contains(v.stages, stage) {
			return v
		}
	}
	return nil
}

func (s *secret) version(id string) *version {
	for _, v := range s.versions {
		if v.id == id {
			return v
		}
	}
	return nil
}

// store holds the secrets by name and answers the calls.
type store struct {
	mu      sync.Mutex
	secrets map[string]*secret
	calls   map[string]func(*request) (any, error)
}

func newStore() *store {
	s := &store{secrets: map[string]*secret{}}
	s.calls = map[string]func(*request) (any, error){
		"CreateSecret":   s.create,
		"GetSecretValue": s.get,
		"PutSecretValue": s.put,
		"DescribeSecret": s.describe,
		"RestoreSecret":  s.restore,
		"DeleteSecret":   s.delete,
		"ListSecrets":    s.list,
	}
	return s
}

// request is the union of the calls' inputs.
type request struct {
	Name, Description, SecretID string
	ClientRequestToken          string
	SecretString                *string
	SecretBinary                []byte
	VersionID, VersionStage     string
	VersionStages               []string
	RecoveryWindowInDays        *int
	ForceDeleteWithoutRecovery  bool
	MaxResults                  int
	NextToken, SortOrder        string
	IncludePlannedDeletion      bool
	Filters                     []struct {
		Key    string
		Values []string
	}

	region string
}

// failure is an error of the service; all that this endpoint makes are status 400.
type failure struct{ code, message string }

func (f failure) Error() string { return f.code + ": " + f.message }

func notFound(message string) error { return failure{"ResourceNotFoundException", message} }
func exists(message string) error   { return failure{"ResourceExistsException", message} }
func badParameter(message string) error {
	return failure{"InvalidParameterException", message}
}
func badRequest(message string) error { return failure{"InvalidRequestException", message} }

var errNoSecret = notFound("Secrets Manager can't find the specified secret.")

// ServeHTTP answers one call.
func (s *store) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	w.Header().Set("X-Amzn-Requestid", uuid.NewString())
	out, err := s.call(r)
	if err != nil {
		var f failure
		if !errors.As(err, &f) {
			f = failure{"InternalServiceError", "An error occurred on the server side."}
		}
		w.Header().Set("X-Amzn-Errortype", f.code)
		w.WriteHeader(http.StatusBadRequest)
		out = map[string]string{"__type": f.code, "Message": f.message}
	}
	_ = json.NewEncoder(w).Encode(out)
}

func (s *store) call(r *http.Request) (any, error) {
	name, ok := strings.CutPrefix(r.Header.Get("X-Amz-Target"), "secretsmanager.")
	call := s.calls[name]
	if !ok || call == nil || r.Method != http.MethodPost {
		return nil, failure{"UnknownOperationException", "The operation is not known: " + name}
	}
	authorization := r.Header.Get("Authorization")
	if authorization == "" {
		return nil, failure{"MissingAuthenticationTokenException", "Missing Authentication Token"}
	}
	scope := scopeForm.FindStringSubmatch(authorization)
	if scope == nil {
		return nil, failure{"IncompleteSignatureException", "Credential should be scoped to correct service: 'secretsmanager'."}
	}
	in := request{region: scope[1]}
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil || json.Unmarshal(body, &in) != nil {
		return nil, failure{"SerializationException", "The request body is no JSON object of this call."}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return call(&in)
}

// find takes a name, an ARN, or an ARN without its random end.
func (s *store) find(id string) (*secret, error) {
	if id == "" {
		return nil, badParameter("You must provide a value for the SecretId parameter.")
	}
	if found := s.secrets[id]; found != nil {
		return found, nil
	}
	for _, found := range s.secrets {
		if found.arn == id || found.arn[:len(found.arn)-len("-XXXXXX")] == id {
			return found, nil
		}
	}
	return nil, errNoSecret
}

// live is find without what is scheduled for deletion.
func (s *store) live(id string) (*secret, error) {
	found, err := s.find(id)
	if err == nil && !found.deletion.IsZero() {
		return nil, badRequest("You can't perform this operation on the secret because it was marked for deletion.")
	}
	return found, err
}

func (s *store) create(in *request) (any, error) {
	if !nameForm.MatchString(in.Name) {
		return nil, badParameter("Invalid name. Must be a valid name containing alphanumeric characters, or any of the following: -/_+=.@!")
	}
	if err := in.checkValue(); err != nil {
		return nil, err
	}
	now := time.Now()
	if found := s.secrets[in.Name]; found != nil {
		if !found.deletion.IsZero() {
			return nil, badRequest("You can't create this secret because a secret with this name is already scheduled for deletion.")
		}
		if v := found.version(in.ClientRequestToken); v != nil && in.same(v) {
			return found.answer(v), nil
		}
		return nil, exists("The operation failed because the secret " + in.Name + " already exists.")
	}
	created := &secret{
		arn:  fmt.Sprintf("arn:aws:secretsmanager:%s:000000000000:secret:%s-%s", in.region, in.Name, suffix()),
		name: in.Name, description: in.Description, created: now, changed: now,
	}
	s.secrets[in.Name] = created
	if !in.hasValue() {
		return map[string]string{"ARN": created.arn, "Name": created.name}, nil
	}
	return created.answer(created.add(in, now)), nil
}

func (s *store) put(in *request) (any, error) {
	found, err := s.live(in.SecretID)
	if err != nil {
		return nil, err
	}
	if !in.hasValue() {
		return nil, badRequest("You must provide either SecretString or SecretBinary.")
	}
	if err := in.checkValue(); err != nil {
		return nil, err
	}
	if v := found.version(in.ClientRequestToken); v != nil {
		if !in.same(v) {
			return nil, exists("A resource with the ID you requested already exists.")
		}
		return found.answer(v), nil
	}
	return found.answer(found.add(in, time.Now())), nil
}

func (s *store) get(in *request) (any, error) {
	found, err := s.live(in.SecretID)
	if err != nil {
		return nil, err
	}
	stage := in.VersionStage
	v, asked := found.version(in.VersionID), "VersionId: "+in.VersionID
	if in.VersionID == "" {
		stage = cmp.Or(stage, current)
		v, asked = found.staged(stage), "staging label: "+stage
	}
	if v == nil {
		return nil, notFound("Secrets Manager can't find the specified secret value for " + asked)
	}
	if stage != "" && !slices.Contains(v.stages, stage) {
		return nil, badRequest("You provided a VersionStage that is not associated to the provided VersionId.")
	}
	out := found.answer(v)
	out["CreatedDate"] = epoch(v.created)
	if v.text != nil {
		out["SecretString"] = *v.text
	} else {
		out["SecretBinary"] = v.binary
	}
	return out, nil
}

func (s *store) describe(in *request) (any, error) {
	found, err := s.find(in.SecretID)
	if err != nil {
		return nil, err
	}
	return found.summary("VersionIdsToStages"), nil
}

func (s *store) delete(in *request) (any, error) {
	found, err := s.find(in.SecretID)
	if err != nil {
		if in.ForceDeleteWithoutRecovery && errors.Is(err, errNoSecret) {
			return map[string]any{"Name": in.SecretID, "DeletionDate": epoch(time.Now())}, nil
		}
		return nil, err
	}
	days := windowNormal
	if in.RecoveryWindowInDays != nil {
		days = *in.RecoveryWindowInDays
		if in.ForceDeleteWithoutRecovery {
			return nil, badParameter("You can't use ForceDeleteWithoutRecovery in conjunction with RecoveryWindowInDays.")
		}
		if days < windowMin || days > windowMax {
			return nil, badParameter(fmt.Sprintf("The RecoveryWindowInDays value must be between %d and %d days (inclusive).", windowMin, windowMax))
		}
	}
	if in.ForceDeleteWithoutRecovery {
		delete(s.secrets, found.name)
		days = 0
	} else if !found.deletion.IsZero() {
		return nil, badRequest("You tried to perform the operation on a secret that's currently marked deleted.")
	}
	found.deletion = time.Now().AddDate(0, 0, days)
	return map[string]any{"ARN": found.arn, "Name": found.name, "DeletionDate": epoch(found.deletion)}, nil
}

func (s *store) restore(in *request) (any, error) {
	found, err := s.find(in.SecretID)
	if err != nil {
		return nil, err
	}
	found.deletion = time.Time{}
	return map[string]string{"ARN": found.arn, "Name": found.name}, nil
}

func (s *store) list(in *request) (any, error) {
	if in.MaxResults == 0 {
		in.MaxResults = maxResults
	}
	if in.MaxResults < 1 || in.MaxResults > maxResults {
		return nil, badParameter(fmt.Sprintf("MaxResults must be between 1 and %d.", maxResults))
	}
	offset := 0
	if in.NextToken != "" {
		var err error
		if offset, err = strconv.Atoi(in.NextToken); err != nil || offset < 0 {
			return nil, failure{"InvalidNextTokenException", "The NextToken value is invalid."}
		}
	}
	for _, f := range in.Filters {
		if f.Key != "name" {
			return nil, badParameter("The local endpoint filters by name only, not by " + f.Key + ".")
		}
	}
	names := slices.Sorted(maps.Keys(s.secrets))
	names = slices.DeleteFunc(names, func(name string) bool { return !in.selects(s.secrets[name]) })
	slices.SortStableFunc(names, func(a, b string) int { return s.secrets[a].created.Compare(s.secrets[b].created) })
	if in.SortOrder != "asc" { // the service lists the youngest first
		slices.Reverse(names)
	}
	names = names[min(offset, len(names)):]
	out := map[string]any{}
	if len(names) > in.MaxResults {
		names = names[:in.MaxResults]
		out["NextToken"] = strconv.Itoa(offset + in.MaxResults)
	}
	summaries := []map[string]any{}
	for _, name := range names {
		summaries = append(summaries, s.secrets[name].summary("SecretVersionsToStages"))
	}
	out["SecretList"] = summaries
	return out, nil
}

// selects applies the filters: every one of them, by any of its values, each a prefix; "!" before it negates.
func (in *request) selects(s *secret) bool {
	if !s.deletion.IsZero() && !in.IncludePlannedDeletion {
		return false
	}
	for _, f := range in.Filters {
		if !slices.ContainsFunc(f.Values, func(value string) bool {
			prefix, negated := strings.CutPrefix(value, "!")
			return strings.HasPrefix(s.name, prefix) != negated
		}) {
			return false
		}
	}
	return true
}

func (in *request) hasValue() bool { return in.SecretString != nil || in.SecretBinary != nil }

func (in *request) checkValue() error {
	switch {
	case in.SecretString != nil && in.SecretBinary != nil:
		return badParameter("You can't specify both a binary secret value and a string secret value in the same secret.")
	case in.SecretString != nil && len(*in.SecretString) > maxValue, len(in.SecretBinary) > maxValue:
		return badParameter(fmt.Sprintf("The secret value must have length less than or equal to %d.", maxValue))
	case in.ClientRequestToken != "" && !tokenForm.MatchString(in.ClientRequestToken):
		return badParameter("ClientRequestToken must be 32-64 characters long.")
	}
	return nil
}

// same tells whether a version holds what the request brings.
func (in *request) same(v *version) bool {
	if in.SecretString == nil || v.text == nil {
		return in.SecretString == nil && v.text == nil && string(in.SecretBinary) == string(v.binary)
	}
	return *in.SecretString == *v.text
}

// add makes a version of the request's value and moves the stages to it.
func (s *secret) add(in *request, now time.Time) *version {
	stages := in.VersionStages
	if len(stages) == 0 {
		stages = []string{current}
	}
	if was := s.staged(current); was != nil && slices.Contains(stages, current) {
		s.take(previous)
		was.stages = append(was.stages, previous)
	}
	for _, stage := range stages {
		s.take(stage)
	}
	v := &version{id: cmp.Or(in.ClientRequestToken, uuid.NewString()), text: in.SecretString, binary: in.SecretBinary, stages: stages, created: now}
	s.versions = append(slices.DeleteFunc(s.versions, func(v *version) bool { return len(v.stages) == 0 }), v)
	s.changed = now
	return v
}

// take removes a stage from whichever version has it.
func (s *secret) take(stage string) {
	for _, v := range s.versions {
		v.stages = slices.DeleteFunc(v.stages, func(s string) bool { return s == stage })
	}
}

func (s *secret) answer(v *version) map[string]any {
	return map[string]any{"ARN": s.arn, "Name": s.name, "VersionId": v.id, "VersionStages": slices.Clone(v.stages)}
}

// summary is what a description and a list say of a secret; they differ in how they name its versions.
func (s *secret) summary(versions string) map[string]any {
	stages := map[string][]string{}
	for _, v := range s.versions {
		stages[v.id] = slices.Clone(v.stages)
	}
	out := map[string]any{
		"ARN": s.arn, "Name": s.name, "CreatedDate": epoch(s.created), "LastChangedDate": epoch(s.changed),
		versions: stages,
	}
	if s.description != "" {
		out["Description"] = s.description
	}
	if !s.deletion.IsZero() {
		out["DeletedDate"] = epoch(s.deletion)
	}
	return out
}

// epoch is AWS JSON's form of a time: seconds with decimals.
func epoch(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

// suffix is the random end of an ARN.
func suffix() string {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	b := make([]byte, 6)
	for i := range b {
		b[i] = letters[rand.IntN(len(letters))]
	}
	return string(b)
}
