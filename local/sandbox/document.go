package sandbox

import (
	"bytes"
	"cmp"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/template"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/google/uuid"
	"go.yaml.in/yaml/v3"
)

//go:embed sms.yaml lookups.yaml rates.yaml usd.json
var files embed.FS

// document is one vendor of sms.yaml, lookups.yaml or rates.yaml.
type document struct {
	Source  string   // of the responses and rules without one of their own
	Media   string   // of the responses in JSON
	Unknown string   // the response to a path that the vendor does not have
	Secrets []string // the parameters, JSON fields, headers and path parts that hold credentials
	// basic, bearer or fields, and the fields of the account; FIELD=NAME where the call's has another name
	Auth      []string
	Account   map[string]string    // the secret fields of the account that the vendor accepts
	Forms     map[string][]bankRow // of the central bank, by the folder of their path
	Calls     []*documentedCall    // of those with the same route, the first one whose When holds
	Responses map[string]*documentedResponse

	name    string
	mask    *mask
	unknown *documentedCall // to a path that the vendor does not have
	tokens  sync.Map        // the ends of the lives of the tokens that the vendor has issued
	used    sync.Map        // the values of Once that the vendor has seen

	mu   sync.Mutex
	kept []keptMessage // the last accepted messages of the calls with Keep, oldest first
}

// keptMessage is a message that the vendor can report later.
type keptMessage struct {
	ID, To, Text string
	At           time.Time
}

// documentedCall is one call of a vendor. A field of a JSON body has the name of its path: "a.b", "a[]" for the items
// of a list, "a#" for a number and "a?" for a boolean. "@Name" is a header, and "/name" a part of the path.
type documentedCall struct {
	Routes    []string          // method and path as http.ServeMux takes them; an empty path is the vendor's endpoint
	When      map[string]string // the values of fields
	Operation string            // as in Call; empty: send
	Fields    []string          // that the document names; none: not checked
	To, Text  string            // the fields of recipients and text
	Commas    bool              // separate recipients
	Most      int               // the maximum of recipients
	Rules     []*rule           // in their order
	Once      string            // the field whose value an accepted call uses up
	Again     string            // the response to a used value
	// the format of the ID of an accepted message that the vendor keeps; empty: the vendor keeps none
	Keep      string
	Responses map[Outcome]string
}

// rule is a condition without which the vendor refuses a call with a response.
type rule struct {
	Field, Must string // each value of the field matches the pattern; without a value "" does
	To, Text    string // the pattern of each recipient, and of each text
	Longest     int    // the maximum of characters of a value; 0: none
	Unless      string // a name of conditions
	Pace        int    // the maximum of calls in any second
	Locks       int    // the failed logins that lock the account
	Give        string // the response
	Source      string

	pattern *regexp.Regexp
	mu      sync.Mutex
	taken   []time.Time // the last calls within a second, or the failed logins
}

// documentedResponse is a response: a template of package text/template over a received call.
type documentedResponse struct {
	Status       int
	Body, Source string

	template *template.Template
}

// received is a call as the vendor received it.
type received struct {
	*http.Request
	*documentedCall
	document *document
	server   *Server
	body     []byte
	values   url.Values
	valid    bool // the body is JSON, a form or empty
	To       []string
	Text     string
	ID       string // of the message that the call makes, where the call has Keep
	Name     string // of the response
}

// documents returns the vendors of the documents, each with a state of its own.
func documents() map[string]*document {
	all := map[string]*document{}
	for _, name := range []string{"sms.yaml", "lookups.yaml", "rates.yaml"} {
		text, err := fs.ReadFile(files, name)
		if err = errors.Join(err, yaml.Unmarshal(text, &all)); err != nil {
			panic(err) // the file is a part of the program
		}
	}
	for name, d := range all {
		d.name, d.unknown = name, &documentedCall{Rules: []*rule{{Unless: "never", Give: d.Unknown}}}
		d.mask = newMask(d)
		functions := template.FuncMap{
			"id":    func() string { return strconv.Itoa(100_000_000 + rand.IntN(900_000_000)) },
			"uuid":  func() string { return strings.ReplaceAll(uuid.NewString(), "-", "") },
			"token": d.issue,
			"word":  func(name string) string { return name[strings.LastIndexByte(name, ' ')+1:] },
			"json":  func(v any) (string, error) { text, err := json.Marshal(v); return string(text), err },
			"now":   func() time.Time { return time.Now().UTC() },
			"words": strings.Fields, "rates": ratesWith, "workingDays": workingDays,
		}
		for _, s := range d.Responses {
			s.template = template.Must(template.New("").Funcs(functions).Parse(s.Body))
		}
		for _, c := range d.Calls {
			c.Operation = cmp.Or(c.Operation, "send")
			for _, r := range c.Rules {
				r.pattern = regexp.MustCompile(cmp.Or(r.To, r.Text, r.Must))
			}
		}
	}
	return all
}

// issue returns a new token, whose life has so many seconds.
func (d *document) issue(seconds int) string {
	token := "sandbox." + uuid.NewString()
	d.tokens.Store("Bearer "+token, time.Now().Add(time.Duration(seconds)*time.Second))
	return token
}

// receive decodes a request of a route; an empty route is none of the vendor's.
func (d *document) receive(s *Server, route string, r *http.Request, body []byte) *received {
	in := &received{Request: r, documentedCall: d.unknown, document: d, server: s, body: body}
	in.read()
	for _, c := range d.Calls {
		differs := func(field string) bool { return in.Get(field) != c.When[field] }
		if slices.Contains(c.Routes, route) && !slices.ContainsFunc(slices.Collect(maps.Keys(c.When)), differs) {
			in.documentedCall = c
			break
		}
	}
	in.To = in.all(in.documentedCall.To)
	if list := strings.Join(in.To, ","); in.Commas && list != "" {
		in.To = strings.Split(list, ",")
	}
	in.Text = in.Get(in.documentedCall.Text)
	in.ID = fmt.Sprintf(cmp.Or(in.Keep, "%s"), strings.ReplaceAll(uuid.NewString(), "-", ""))
	return in
}

// refusal returns the response to a call that the vendor refuses, whatever the outcome would be; nil for another call.
func (in *received) refusal() *response {
	for _, rule := range in.Rules {
		if !in.satisfies(rule) {
			return in.respond(rule.Give, rule.Source)
		}
	}
	return nil
}

// accept records an accepted call, or returns the refusal of one that was accepted before.
func (in *received) accept() *response {
	if in.Once != "" {
		if _, used := in.document.used.LoadOrStore(in.Get(in.Once), true); used {
			return in.respond(in.Again, "")
		}
	}
	if in.Keep != "" {
		in.document.keep(in)
	}
	return nil
}

// keep keeps the message of an accepted call. Of 10,000 messages keep drops the older half.
func (d *document) keep(in *received) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.kept) >= 10_000 {
		d.kept = slices.Clone(d.kept[5_000:])
	}
	d.kept = append(d.kept, keptMessage{in.ID, in.To[0], in.Text, time.Now()})
}

// Kept returns the kept messages that the path's ID or the dates of the query select, oldest first.
func (in *received) Kept() (selected []keptMessage) {
	in.document.mu.Lock()
	defer in.document.mu.Unlock()
	from, _ := time.Parse(time.RFC3339, in.Get("DateSent>")) // the beginning of time without a date
	to, err := time.Parse(time.RFC3339, in.Get("DateSent<"))
	id, ofList := strings.TrimSuffix(in.Get("/id"), ".json"), in.Get("/id") == ""
	for _, m := range in.document.kept {
		if ofList && !m.At.Before(from) && (err != nil || !m.At.After(to)) || m.ID == id {
			selected = append(selected, m)
		}
	}
	return selected
}

// respond returns a response of the document, or that of an acceptance where the document has none of the name.
func (in *received) respond(name, source string) *response {
	d := in.document
	s := d.Responses[name]
	if s == nil {
		name = in.Responses[Accepted]
		s = d.Responses[name]
	}
	in.Name = name
	var body bytes.Buffer
	if err := s.template.Execute(&body, in); err != nil {
		panic(err)
	}
	r := &response{status: cmp.Or(s.Status, http.StatusOK), media: "text/plain; charset=utf-8", body: body.Bytes()}
	r.source = cmp.Or(source, s.Source, d.Source)
	switch {
	case bytes.HasPrefix(r.body, []byte("{")), bytes.HasPrefix(r.body, []byte("[")):
		r.media = cmp.Or(d.Media, "application/json")
	case bytes.HasPrefix(r.body, []byte("<")):
		r.media = "text/html; charset=UTF-8"
	}
	return r
}

// read decodes the query and the body.
func (in *received) read() {
	in.values = in.URL.Query()
	var body any
	if in.valid = len(in.body) == 0; in.valid {
		return
	}
	decoder := json.NewDecoder(bytes.NewReader(in.body))
	decoder.UseNumber()
	if in.valid = decoder.Decode(&body) == nil && !decoder.More(); in.valid {
		in.flatten("", body)
		return
	}
	if form, err := url.ParseQuery(string(in.body)); err == nil && !bytes.HasPrefix(in.body, []byte("{")) {
		maps.Copy(in.values, form)
		in.valid = true
	}
}

// flatten adds the values of a JSON value by the names of documentedCall.
func (in *received) flatten(path string, value any) {
	switch v := value.(type) {
	case map[string]any:
		for name, member := range v {
			in.flatten(strings.TrimPrefix(path+"."+name, "."), member)
		}
	case []any:
		if len(v) == 0 {
			in.values[path+"[]"] = nil
		}
		for _, item := range v {
			in.flatten(path+"[]", item)
		}
	case json.Number:
		in.values.Add(path+"#", v.String())
	case bool:
		in.values.Add(path+"?", strconv.FormatBool(v))
	case string:
		in.values.Add(path, v)
	default:
		in.values[path] = nil
	}
}

func (in *received) all(field string) []string {
	switch {
	case strings.HasPrefix(field, "@"):
		return in.Header.Values(field[1:])
	case strings.HasPrefix(field, "/"):
		return []string{in.PathValue(field[1:])}
	}
	return in.values[field]
}

// Get returns the first value of a field, and "" for none.
func (in *received) Get(field string) string {
	return append(in.all(field), "")[0]
}

// satisfies reports whether the rule holds.
func (in *received) satisfies(r *rule) bool {
	values := in.all(r.Field)
	switch {
	case r.Unless != "":
		return conditions[r.Unless](in)
	case r.Pace > 0:
		return r.permits()
	case r.Locks > 0:
		return r.unlocked(conditions["login"](in))
	case r.To != "":
		values = in.To
	case r.Text != "":
		values = in.all(in.documentedCall.Text)
	}
	if len(values) == 0 {
		values = []string{""}
	}
	return !slices.ContainsFunc(values, func(value string) bool {
		return !r.pattern.MatchString(value) || r.Longest > 0 && utf8.RuneCountInString(value) > r.Longest
	})
}

// permits counts a call, unless the last second has too many.
func (r *rule) permits() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.taken = slices.DeleteFunc(r.taken, func(at time.Time) bool { return time.Since(at) >= time.Second })
	if len(r.taken) >= r.Pace {
		return false
	}
	r.taken = append(r.taken, time.Now())
	return true
}

// lockedFor is the time of a lock after its last login. No document has the time.
const lockedFor = 10 * time.Minute

// unlocked counts a login, and reports whether the account is not locked.
func (r *rule) unlocked(good bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := len(r.taken); n > 0 && time.Since(r.taken[n-1]) >= lockedFor || good && n < r.Locks {
		r.taken = nil
	}
	if !good || len(r.taken) > 0 {
		r.taken = append(r.taken, time.Now())
	}
	return len(r.taken) <= r.Locks
}

// conditions are the rules that no pattern can say.
var conditions = map[string]func(*received) bool{
	"authorized": func(in *received) bool { return in.authorized(in.document.Auth[0], in.document.Auth[1:]...) },
	"address":    func(in *received) bool { _, err := netip.ParseAddr(in.IP()); return err == nil },
	"dates": func(in *received) bool {
		_, err := time.Parse(time.DateOnly+" "+time.DateOnly, in.Get("txtStart")+" "+in.Get("txtEnd"))
		return err == nil
	},
	"token": func(in *received) bool {
		end, ok := in.document.tokens.Load(in.Get("@Authorization"))
		return ok && time.Now().Before(end.(time.Time))
	},
	"account":   func(in *received) bool { return in.Get("/account") == in.document.Account["account_sid"] },
	"published": func(in *received) bool { return in.File() != nil },
	"user":      func(in *received) bool { return in.authorized("fields", "username") },
	"login":     func(in *received) bool { return in.authorized("fields", "username", "password") },
	"known key": func(in *received) bool { return awsSignatureError(in) != awsUnknownClient },
	"signed":    func(in *received) bool { return awsSignatureError(in) == "" },
	"json":      func(in *received) bool { return in.valid },
	"never":     func(*received) bool { return false },
	"most":      func(in *received) bool { return len(in.To) <= in.Most },
	"used": func(in *received) bool {
		_, used := in.document.used.Load(in.Get("transaction_id#"))
		return used
	},
	"kept":                        func(in *received) bool { return len(in.Kept()) > 0 },
	"left":                        func(in *received) bool { return in.left() > 0 },
	"GSM or type=unicode":         func(in *received) bool { return in.GSM() || in.Get("type") == "unicode" },
	"From or MessagingServiceSid": func(in *received) bool { return in.Get("From")+in.Get("MessagingServiceSid") != "" },
	"known fields": func(in *received) bool {
		unknown := func(name string) bool { return !slices.Contains(in.Fields, name) }
		return !slices.ContainsFunc(slices.Collect(maps.Keys(in.values)), unknown)
	},
}

// authorized reports whether the call has the fields of the vendor's account: in Basic, as a bearer, or as parameters.
func (in *received) authorized(how string, fields ...string) bool {
	account := in.document.Account
	switch how {
	case "basic":
		user, password, _ := in.BasicAuth()
		return user == account[fields[0]] && password == account[fields[1]]
	case "bearer":
		return in.Get("@Authorization") == "Bearer "+account[fields[0]]
	}
	return !slices.ContainsFunc(fields, func(f string) bool {
		field, name, _ := strings.Cut(f, "=")
		return in.Get(field) != account[cmp.Or(name, field)]
	})
}

// File returns the published file that the path names, or nil.
func (in *received) File() any {
	file, _ := in.server.files.Load(in.URL.Path)
	return file
}

// gsmAlphabet is the basic table of GSM 03.38 and its extension (3GPP TS 23.038).
const gsmAlphabet = "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?¡" +
	"ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§" +
	"¿abcdefghijklmnopqrstuvwxyzäöñüà" + "\f^{}\\[~]|€"

// GSM reports whether the text needs no Unicode.
func (in *received) GSM() bool {
	return !strings.ContainsFunc(in.Text, func(c rune) bool { return !strings.ContainsRune(gsmAlphabet, c) })
}

// Units returns how many segments the vendor bills for the text, by plain division.
func (in *received) Units() int {
	size, limit := utf8.RuneCountInString(in.Text), 153
	if !in.GSM() {
		size, limit = len(utf16.Encode([]rune(in.Text))), 67
	}
	return (size + limit - 1) / limit
}

// CostOfOne returns the cost of the text to one recipient.
func (in *received) CostOfOne(price float64) float64 { return price * float64(in.Units()) }

// Cost returns the cost of the text to all recipients.
func (in *received) Cost(price float64) float64 { return in.CostOfOne(price) * float64(len(in.To)) }

var nineDigits = regexp.MustCompile(`^7\d{8}$`)

// blocked is a number that has blocked each sender of Dialog eSMS.
const blocked = "770000007"

// Invalid returns the number of recipients without a mobile number of nine digits.
func (in *received) Invalid() int {
	return len(slices.DeleteFunc(slices.Clone(in.To), nineDigits.MatchString))
}

// Duplicates returns the number of recipients that are listed before.
func (in *received) Duplicates() int {
	return len(in.To) - len(slices.Compact(slices.Sorted(slices.Values(in.To))))
}

// Blocked returns 1 where the blocked number is among the recipients.
func (in *received) Blocked() int { return map[bool]int{true: 1}[slices.Contains(in.To, blocked)] }

// left returns the number of recipients that remain.
func (in *received) left() int { return len(in.To) - in.Invalid() - in.Duplicates() - in.Blocked() }
