package vendors

import (
	"crypto/cipher"
	"encoding/base64"
	"strconv"
	"strings"
	"time"

	"svcapi/shared/cache"
	"svcapi/shared/project"
	"svcapi/shared/upstream"
)

// Sealer seals and opens the references of one project's sends in one environment
// (docs/decisions/extensions.md#references).
type Sealer struct {
	Scope string // begins the keys of the sends, and authenticates the references
	aead  cipher.AEAD
	hash  func(text string) string
}

// NewSealer returns the sealer of a project's environment.
func NewSealer(p *project.Project, env project.Environment) Sealer {
	return Sealer{p.ID + "/" + string(env) + "/", p.Cipher("sms reference"), p.RecipientID}
}

// SendKey returns the key of a request's call whose first recipient has an index.
func SendKey(request string, index int) string { return request + "/" + strconv.Itoa(index) }

const (
	maxID       = 48 // the longest vendor's ID in a reference. A reference has up to 200 characters.
	partHash    = 4  // characters of the hash of an account's owner, and of its endpoint
	accountHash = 16 // characters of the hash of an account
)

// Seal returns the reference of a send through an account that has just ended. The reference has
// hashes of the account's owner and endpoint. The send is named by the vendor's ID, else by hashes of the account and
// of its only recipient's number with the text; an empty number means several recipients.
func (s Sealer) Seal(by upstream.Account, key, id, number, body string) string {
	fields := []string{by.Integration.Vendor, strings.TrimPrefix(key, s.Scope),
		strconv.FormatInt(cache.Clock{}.Now().Unix(), 36), s.owner(by) + s.endpoint(by), "", ""}
	if id != "" && len(id) <= maxID {
		fields[5] = id
	} else if fields[3] += s.account(by); number != "" {
		fields[4] = s.hash(number + "\x00" + body)
	}
	text := []byte(strings.Join(fields, "\x00"))
	for {
		sealed := s.aead.Seal(nil, nil, text, []byte(s.Scope))                    //nolint:gosec // the cipher makes the nonce
		if sent := base64.RawURLEncoding.EncodeToString(sealed); sent[0] != '-' { // a command takes that for a flag
			return sent
		}
	}
}

func (s Sealer) owner(a upstream.Account) string    { return s.hash(a.Owner)[:partHash] }
func (s Sealer) endpoint(a upstream.Account) string { return s.hash(a.Endpoint)[:partHash] }

// account returns a hash of all that names an account at its vendor, and of its password.
func (s Sealer) account(a upstream.Account) string {
	text := []string{a.Owner, a.Endpoint}
	for _, name := range a.Secrets.Names() {
		text = append(text, name, a.Secrets[name])
	}
	return s.hash(strings.Join(text, "\x00"))[:accountHash]
}

// Open returns the send of a reference of this scope, and false for any other text.
func (s Sealer) Open(text string) (vendor string, send PastSend, ok bool) {
	sealed, _ := base64.RawURLEncoding.DecodeString(text)
	oneSpelling := base64.RawURLEncoding.EncodeToString(sealed) == text // the decoder accepts others
	plain, err := s.aead.Open(nil, nil, sealed, []byte(s.Scope))
	if err != nil || !oneSpelling {
		return "", send, false
	}
	fields := strings.SplitN(string(plain), "\x00", 6)
	seconds, _ := strconv.ParseInt(fields[2], 36, 64) // Seal has written it
	return fields[0], PastSend{
		Key: s.Scope + fields[1], ID: fields[5], Ended: time.Unix(seconds, 0),
		IsOf: func(a upstream.Account) bool { return strings.HasPrefix(fields[3], s.owner(a)) },
		IsBy: func(a upstream.Account) bool {
			return strings.HasPrefix(s.owner(a)+s.endpoint(a)+s.account(a), fields[3])
		},
		IsTo: func(number, body string) bool { return s.hash(number+"\x00"+body) == fields[4] },
	}, true
}
