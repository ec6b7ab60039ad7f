package acceptance

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"

	"svcapi/test/leaks"
)

// wire is a request as it goes over the wire, byte for byte.
type wire struct {
	method, target, version string
	fields                  [][2]string // header lines, as they are written
	body                    []byte
	framing                 framing
	sep                     string // between header lines

	path  string   // of openapi.yaml, as long as the target is an example of it
	sound bool     // valid HTTP, which must have a response
	free  bool     // no credentials of the project under test, so that nothing can be charged
	how   []string // what was done to it
}

// framing is how a request marks the end of its body.
type framing int

const (
	byLength framing = iota
	byChunks
	unframed // whatever the header lines say
)

// example is one request that openapi.yaml describes.
type example struct {
	method, path, target string
	body                 any // nil: none
}

// examples are all example requests of openapi.yaml.
func examples(spec *openapi3.T) []example {
	var list []example
	for _, path := range slices.Sorted(maps.Keys(spec.Paths.Map())) {
		item := spec.Paths.Value(path)
		for method, operation := range item.Operations() {
			target := path
			for _, p := range slices.Concat(item.Parameters, operation.Parameters) {
				if p.Value.In == openapi3.ParameterInPath {
					target = strings.ReplaceAll(target, "{"+p.Value.Name+"}", fmt.Sprint(p.Value.Example))
				}
			}
			if operation.RequestBody == nil {
				list = append(list, example{method, path, target, nil})
				continue
			}
			content := operation.RequestBody.Value.Content["application/json"]
			if content.Example != nil {
				list = append(list, example{method, path, target, content.Example})
			}
			for _, name := range slices.Sorted(maps.Keys(content.Examples)) {
				list = append(list, example{method, path, target, content.Examples[name].Value.Value})
			}
		}
	}
	return list
}

// generator makes requests. The same seed and index make the same request.
type generator struct {
	seed     uint64
	prefix   string // of the API
	host     string
	examples []example
	tenants  []*tenant
}

// request is the one of an index. Every third of them is as openapi.yaml describes it but for its values.
func (g *generator) request(index int) *wire {
	r := rand.New(rand.NewPCG(g.seed, uint64(index)))
	e := pick(r, g.examples)
	if strings.Contains(e.path, "/utilities/pdf/") && r.IntN(12) > 0 { // a document takes a hundred times as long
		e = pick(r, g.examples)
	}
	as := pick(r, g.tenants)
	w := &wire{
		method: e.method, target: g.prefix + e.target, version: "HTTP/1.1", sep: "\r\n", path: e.path, sound: true,
		fields: [][2]string{{"Host", g.host}, {"X-API-KEY", as.dev.ID}, {"X-API-SECRET", as.dev.Secret}, {"Connection", "close"}},
	}
	if e.body != nil {
		w.set("Content-Type", "application/json")
		w.body = spoil(r, w, e.body)
	}
	if e.body != nil && r.IntN(20) == 0 {
		w.hush(r, e.body)
		return w
	}
	if r.IntN(3) == 0 {
		return w
	}
	for range 1 + r.IntN(3) {
		m := pick(r, mutations)
		m.do(r, w)
		w.how = append(w.how, m.name)
	}
	return w
}

// hush requests privacy, by the header or by the field, for a payload that the search through the logs looks for.
func (w *wire) hush(r *rand.Rand, body any) {
	fields, _ := body.(map[string]any) // every example is an object
	fields = maps.Clone(fields)
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if _, isText := fields[name].(string); isText && r.IntN(2) == 0 {
			fields[name] = leaks.Private
		}
	}
	fields["note"] = leaks.Private
	if r.IntN(2) == 0 && strings.Contains(w.path, "/utilities/") {
		fields["privacy_mode"] = pick(r, []any{true, "yes", 1})
	} else {
		w.set("X-Privacy-Mode", pick(r, []string{"1", "true", "TRUE"}))
	}
	w.body, _ = json.Marshal(fields) // an example of openapi.yaml, and texts
	w.how = append(w.how, "privacy")
}

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

func (w *wire) set(name, value string) { w.fields = append(w.fields, [2]string{name, value}) }

// change replaces the values of a header line, or removes the line.
func (w *wire) change(name string, change func(value string) (string, bool)) {
	var kept [][2]string
	for _, f := range w.fields {
		keep := true
		if strings.EqualFold(f[0], name) {
			f[1], keep = change(f[1])
		}
		if keep {
			kept = append(kept, f)
		}
	}
	w.fields = kept
}

func (w *wire) header(name string) string {
	for _, f := range w.fields {
		if strings.EqualFold(f[0], name) {
			return f[1]
		}
	}
	return ""
}

// bytes is what goes over the wire.
func (w *wire) bytes() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s %s%s", w.method, w.target, w.version, w.sep)
	for _, f := range w.fields {
		b.WriteString(f[0] + ": " + f[1] + w.sep)
	}
	switch w.framing {
	case byLength:
		if len(w.body) > 0 || w.method == http.MethodPost {
			b.WriteString("Content-Length: " + strconv.Itoa(len(w.body)) + w.sep)
		}
		b.WriteString(w.sep)
		b.Write(w.body)
	case byChunks:
		b.WriteString("Transfer-Encoding: chunked" + w.sep + w.sep)
		for part := range slices.Chunk(w.body, max(1, len(w.body)/3)) {
			fmt.Fprintf(&b, "%x;x=\"y\"\r\n%s\r\n", len(part), part)
		}
		b.WriteString("0\r\nX-API-KEY: trailer\r\nContent-Length: 7\r\n\r\n")
	case unframed:
		b.WriteString(w.sep)
		b.Write(w.body)
	}
	return b.Bytes()
}

// texts are strings that something may trip over: scripts, forms that look alike or become alike, control characters,
// and what is code elsewhere.
var texts = []string{
	"", " ", "\x00", "a\x00b", "\r\nX-Injected: 1", "\u202eevil\u202c", "\u200b", "\ufeff", "\ufffe", "é", "e\u0301", "ﬁ", "Å", "\u212b", "А", "а@еxample.com",
	"user@exаmple.com", "user@xn--exmple-4nf.com", "user@bücher.example", "user@BÜCHER.example", "user@faß.de", "user@example。com", "user@[127.0.0.1]",
	"\"a b\"@example.com", "a@b", "a@" + strings.Repeat("x", 64) + ".com", strings.Repeat("a.", 120) + "a@example.com", "user@mailinator.com", "a@b@c.com",
	"👨‍👩‍👧‍👦", strings.Repeat("😀", 70), strings.Repeat("ක", 202), strings.Repeat("a", 460), strings.Repeat("€", 230), strings.Repeat("Z\u0351", 40), "ﷺ", "İ", "ı", "ǅ",
	"192.0.2.1", "8.8.8.8", "::1", "::ffff:8.8.8.8", "fe80::1%eth0", "0x7f.1", "127.1", "1.2.3.4 ", "１.２.３.４", "2001:db8::1", "112.134.0.1", "010.8.8.8",
	"0771234567", "+94771234567", "0771234567\n", "٠٧٧١٢٣٤٥٦٧", "94771234567", "ip-api", "../../etc/passwd", "${jndi:ldap://x}", "{{7*7}}", "' OR 1=1--", "<script>alert(1)</script>",
	"null", "true", "NaN", "-0", "1e999", "#ff00ff", "##ff00ff", "EAN13", "C39+", "c128", "PNG", "4006381333931", "12345-6789", "single", "bulk_same", "L",
	"PHA+YTwvcD4=", "=", "<p>" + strings.Repeat("<div>", 600), "<img src=file:///etc/passwd>", "<iframe src=http://169.254.169.254/></iframe>", "<style>@page{size:1mm}</style>x",
}

// rawValues are JSON values that are written unchanged.
var rawValues = []string{
	"null", "true", "0", "-0", "-0.0", "1e0", "80.0", "8e1", "4.0000000000000000000001", "3.9999999999999999999999", "1e999999", "-1e999999", "1e-999999", "0e999999", "9007199254740993",
	"18446744073709551616", "0.1e1", "[]", "{}", "[[[[]]]]", `"\ud800"`, `"\udc00\ud800"`, `"\ud83d\ude00"`, `"\u0000"`, "\"\xff\"", "\"\xc0\xaf\"", "\"\xed\xa0\x80\"", "\"\x01\"", "01", "+1", ".5", "1.", "NaN", "Infinity", "0x10",
	"'a'", `"a`, "undefined", `{"a":1,"a":2}`, `{"a":1,"\u0061":2}`, `"\/"`, `"\x"`, "1 2",
}

// spoil writes a body, as it is or with some of its values replaced by others.
func spoil(r *rand.Rand, w *wire, body any) []byte {
	text, _ := json.Marshal(body) // an example of openapi.yaml
	if r.IntN(4) == 0 {
		return text
	}
	var fields map[string]any
	_ = json.Unmarshal(text, &fields)
	names := slices.Sorted(maps.Keys(fields))
	raw := map[string]string{}
	for range 1 + r.IntN(2) {
		name := "privacy_mode"
		if len(names) > 0 {
			name = pick(r, names)
		}
		value, _ := json.Marshal(pick(r, texts))
		switch r.IntN(6) {
		case 0:
			value = []byte(pick(r, rawValues))
		case 1:
			delete(fields, name)
			continue
		case 2:
			name = pick(r, []string{"provider", "check_cost", "is_base64", "quiet_zone", "margins", "width_factor", "height", "size", "margin", "TO", "Message", "__proto__", "recipients", "msg_list", "type", "format"})
			value = []byte(pick(r, rawValues))
		case 3:
			value = []byte("[" + string(value) + "," + pick(r, rawValues) + "]")
		}
		raw[name] = string(value)
		w.how = append(w.how, name+"="+string(value[:min(len(value), 60)]))
	}
	var b strings.Builder
	b.WriteByte('{')
	for name, value := range fields {
		if _, replaced := raw[name]; !replaced {
			text, _ := json.Marshal(value)
			raw[name] = string(text)
		}
	}
	for i, name := range slices.Sorted(maps.Keys(raw)) {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%q:%s", name, raw[name])
	}
	b.WriteByte('}')
	return []byte(b.String())
}

// heavy are bodies that cost something to make: made once, sent seldom.
var heavy = sync.OnceValue(func() map[string][]byte {
	const limit = 4 << 20
	padded := func(n int) []byte {
		return append([]byte(`{"send_method":"single"}`), bytes.Repeat([]byte(" "), n-24)...)
	}
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	for range 64 {
		_, _ = z.Write(make([]byte, 1<<20))
	}
	_ = z.Close()
	return map[string][]byte{
		"arrays, 100,000 deep":         []byte(`{"message":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + "}"),
		"objects, 100,000 deep":        []byte(strings.Repeat(`{"a":`, 100_000) + "1" + strings.Repeat("}", 100_000)),
		"arrays that never end":        bytes.Repeat([]byte("["), 1_000_000),
		"a number of 1,000,000 digits": []byte(`{"data":"1","height":` + strings.Repeat("9", 1_000_000) + "}"),
		"80 with 1,000,000 zeros":      []byte(`{"data":"1","height":80.` + strings.Repeat("0", 1_000_000) + "}"),
		"an exponent of 100,000 zeros": []byte(`{"data":"1","height":8e` + strings.Repeat("0", 100_000) + "1}"),
		"100,000 names":                []byte(`{` + manyNames(100_000) + `}`),
		"20,000 recipients":            []byte(`{"send_method":"bulk_same","message":"m","recipients":[` + strings.TrimSuffix(strings.Repeat(`"0771234567",`, 20_000), ",") + `]}`),
		"a text of 2 MiB":              []byte(`{"data":"` + strings.Repeat("x", 2<<20) + `","message":"` + strings.Repeat("x", 1<<20) + `"}`),
		"4 MiB":                        padded(limit),
		"4 MiB and a byte":             padded(limit + 1),
		"4 MiB less a byte":            padded(limit - 1),
		"an event over 6 MiB":          padded(5 << 20),
		"over 10 MiB":                  padded(11 << 20),
		"a gzip bomb":                  bomb.Bytes(),
	}
})

func manyNames(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"n%d":%d,`, i, i)
	}
	return strings.TrimSuffix(b.String(), ",")
}

// mutation is one thing to do to a request.
type mutation struct {
	name string
	do   func(r *rand.Rand, w *wire)
}

var mutations = []mutation{
	{"method", func(r *rand.Rand, w *wire) {
		w.method = pick(r, []string{"GET", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "POST", "post", "PRI", "M-SEARCH", strings.Repeat("A", 3000), "P\x00ST", "PÖST", "", "CONNECT", "GE T"})
		w.sound = w.sound && slices.Contains([]string{"GET", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "POST", "post", "M-SEARCH"}, w.method)
	}},
	{"path", func(r *rand.Rand, w *wire) {
		base := w.target
		at := r.IntN(len(base) + 1)
		part := pick(r, []string{"%2e%2e/", "../", "%2F", "%5c", "\\", "%00", "%", "%zz", "%c0%af", "%ff", "\xff", "é", ";x=1", "//", "/./", "%252e", "%0d%0aX-A:%20b", "%20", "+", "?a=b&a=%zz&%00=1", "#x", "%E2%80%AE", "%C2%A0", "%ef%bc%8f", ":", "@", "{base}", "*", "~", "%2531"})
		w.target, w.path = base[:at]+part+base[at:], ""
		w.sound = false // some of them are no HTTP
	}},
	{"path, long", func(r *rand.Rand, w *wire) {
		w.target += "/" + strings.Repeat(pick(r, []string{"a", "%41", "/", "../"}), pick(r, []int{100, 3000, 9000, 70_000}))
		w.path, w.sound = "", false
	}},
	{"path, ending", func(r *rand.Rand, w *wire) {
		w.target += pick(r, []string{"/", "//", "/.", "/..", ".json", "/%2e", " ", "%20", ";", "/1", "/0", "/-1", "/1e3", "/LKR", "/" + strings.Repeat("9", 40)})
		w.path, w.sound = "", false
	}},
	{"segment", func(r *rand.Rand, w *wire) {
		segments := strings.Split(w.target, "/")
		segments[len(segments)-1] = pick(r, []string{"USD", "usd", "LKR-SELL", "lkr-buy", "XXX", "%55SD", "US", "USDT", "%E2%84%AA", "1", "0", "0.00000001", "999999999999999.99999999", "1e5", "%31", "-1", "1.123456789", "LKR%2DBUY", "codes", "%0a"})
		w.target, w.path = strings.Join(segments, "/"), ""
	}},
	{"form of the target", func(r *rand.Rand, w *wire) {
		w.target = pick(r, []string{"http://evil.example" + w.target, "*", "//evil.example" + w.target, w.target + "?" + strings.Repeat("a=b&", 500), "?" + w.target, "/", "/docs/../api/v1/sms/send", "/.env", "/2018-06-01/runtime/invocation/next", "/_sandbox/calls"})
		w.path, w.sound = "", false
	}},
	{"version", func(r *rand.Rand, w *wire) {
		w.version = pick(r, []string{"HTTP/1.0", "HTTP/0.9", "HTTP/2.0", "HTTP/1.2", "HTTP/9.9", "http/1.1", "HTTP/1.1 ", "", "HTTP/1.1\x00"})
		w.sound = false
	}},
	{"many header lines", func(r *rand.Rand, w *wire) {
		n := pick(r, []int{20, 100, 1000, 20_000})
		for i := range n {
			w.set("X-"+strconv.Itoa(i), "v")
		}
		w.sound = w.sound && n <= 100
	}},
	{"a long header line", func(r *rand.Rand, w *wire) {
		n := pick(r, []int{1000, 9000, 64 << 10, 1 << 20})
		w.set(pick(r, []string{"X-Long", "Cookie", "User-Agent", "Accept", "X-Forwarded-For", "Authorization", "X-API-KEY", "X-ENV"}), strings.Repeat(pick(r, []string{"a", ",", "é", "a,"}), n))
		w.sound, w.free = false, true
	}},
	{"a header line that is none", func(r *rand.Rand, w *wire) {
		f := pick(r, [][2]string{{"", "v"}, {"X A", "v"}, {"X-A ", "v"}, {"X-Ä", "v"}, {"X-A", "v\r\nX-API-KEY: other"}, {"X-A", "v\nb"}, {"X-A", "v\r\n folded"}, {"X-A", "a\x00b"}, {"X-A", "\x7f"}, {"X-A:", "v"}, {"\x00", ""}, {"X-A", "v\rX: y"}})
		w.fields = slices.Insert(w.fields, r.IntN(len(w.fields)+1), f)
		w.sound = false
	}},
	{"a header line", func(r *rand.Rand, w *wire) {
		w.set(pick(r, []string{"X-ENV", "X-Privacy-Mode", "X-Confirm-Send", "Idempotency-Key", "Origin", "X-SVC-Client", "Accept", "Content-Type", "Accept-Encoding", "Range", "If-None-Match", "X-HTTP-Method-Override", "X-Original-URL", "X-Forwarded-Host", "X-Amzn-Trace-Id", "x-amzn-requestid", "X-SVC-Request-ID", "Cookie", "Te", "Upgrade", "Max-Forwards", "X-Amz-Date", "Via"}),
			pick(r, append([]string{"1", "true", "TRUE", "dev", "production", "prod", "playground", "application/pdf", "image/svg+xml", "multipart/form-data; boundary=x", "text/plain; charset=utf-16", "*/*;q=0", "gzip, br;q=NaN", "bytes=0-", "key-1", "key-2", strings.Repeat("k", 129), "h2c", "\xff\xfe", "null", "https://docs.example.com"}, texts[4], texts[9])))
		w.sound = w.sound && !strings.Contains(w.fields[len(w.fields)-1][1], "\n")
	}},
	{"Authorization", func(r *rand.Rand, w *wire) {
		w.set("Authorization", pick(r, []string{"Basic " + base64.StdEncoding.EncodeToString([]byte(w.header("X-API-KEY")+":x")), "Bearer x", "AWS4-HMAC-SHA256 Credential=AKID/20260101/eu-west-1/execute-api/aws4_request", "\"", ""}))
	}},
	{"Host", func(r *rand.Rand, w *wire) {
		host := pick(r, []string{"evil.example", "[::1", "[::1]", "a b", "%zz", "", "a\"b", "localhost:99999", "é", strings.Repeat("a", 300), "a/../b", "a,b", "169.254.169.254"})
		w.change("Host", func(string) (string, bool) { return host, true })
		w.sound = false
	}},
	{"two Hosts or none", func(r *rand.Rand, w *wire) {
		w.sound = false
		if r.IntN(2) == 0 {
			w.set("Host", "other.example")
			return
		}
		w.change("Host", func(string) (string, bool) { return "", false })
	}},
	{"line ends", func(r *rand.Rand, w *wire) {
		w.sep = pick(r, []string{"\n", "\r", "\r\r\n", " \r\n"})
		w.sound = false
	}},
	{"credentials", func(r *rand.Rand, w *wire) {
		w.free = true
		change := pick(r, []func(string) (string, bool){
			func(string) (string, bool) { return "", false },
			func(string) (string, bool) { return "", true },
			func(v string) (string, bool) { return strings.ToUpper(v), true },
			func(v string) (string, bool) { return v + "x", true },
			func(v string) (string, bool) { return v[:max(0, len(v)-1)], true }, // an earlier change may have emptied it
			func(v string) (string, bool) { return strings.Replace(v, "s", "ѕ", 1), true },
			func(v string) (string, bool) { return strings.Repeat(v, 20), true },
			func(v string) (string, bool) { return "\"" + v + "\"", true },
			func(v string) (string, bool) { return v + "\x00", true },
			func(v string) (string, bool) { return v + ", " + v, true },
			func(string) (string, bool) { return "svc_../../x_aaaaaaaa", true },
			func(string) (string, bool) { return "svc_nobody-here_aaaaaaaa", true },
		})
		w.change(pick(r, []string{"X-API-KEY", "X-API-SECRET"}), change)
		w.sound = false // a NUL is no HTTP
	}},
	{"credentials, swapped", func(_ *rand.Rand, w *wire) {
		key, secret := w.header("X-API-KEY"), w.header("X-API-SECRET")
		w.change("X-API-KEY", func(string) (string, bool) { return secret, true })
		w.change("X-API-SECRET", func(string) (string, bool) { return key, true })
		w.free = true
	}},
	{"credentials, twice", func(r *rand.Rand, w *wire) {
		name := pick(r, []string{"x-api-key", "X-API-SECRET", "X-Env"})
		w.fields = slices.Insert(w.fields, r.IntN(len(w.fields)+1), [2]string{name, pick(r, []string{"svc_other_aaaaaaaa", "", "dev"})})
		w.set(name, "svcs_other")
		w.free = true
	}},
	{"a connection's own header lines", func(_ *rand.Rand, w *wire) {
		w.set("Connection", "X-API-KEY, X-API-SECRET, close")
	}},
	{"chunks", func(_ *rand.Rand, w *wire) {
		if len(w.body) > 0 && w.framing == byLength {
			w.framing = byChunks
		}
	}},
	{"a wrong length", func(r *rand.Rand, w *wire) {
		n := len(w.body)
		w.set("Content-Length", pick(r, []string{strconv.Itoa(n + 10), strconv.Itoa(n / 2), "-1", "1e3", "99999999999999999999", "0x10", "", "+5", " 5 5", strconv.Itoa(n) + ", " + strconv.Itoa(n)}))
		w.framing, w.sound = unframed, false
	}},
	{"two framings", func(r *rand.Rand, w *wire) {
		w.set("Content-Length", strconv.Itoa(len(w.body)))
		w.set("Transfer-Encoding", pick(r, []string{"chunked", "gzip, chunked", "identity", "chunked, chunked", "\vchunked", "xchunked", "chunked\x00"}))
		w.body = pick(r, [][]byte{w.body, []byte("0\r\n\r\nGET /docs HTTP/1.1\r\nHost: x\r\n\r\n"), []byte("fffffffffffffffff\r\n"), []byte("-1\r\n"), []byte("5\r\nab\r\n")})
		w.framing, w.sound = unframed, false
	}},
	{"Expect", func(r *rand.Rand, w *wire) {
		w.set("Expect", pick(r, []string{"100-continue", "200-ok", "100-Continue, x"}))
		w.sound = false
	}},
	{"another request behind it", func(r *rand.Rand, w *wire) {
		w.change("Connection", func(string) (string, bool) { return "keep-alive", true })
		w.body = append(slices.Clone(w.body), []byte("GET /api/v1/utility/currency/codes HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")...)
		if r.IntN(2) == 0 {
			w.set("Content-Length", strconv.Itoa(len(w.body)))
		}
		w.framing, w.sound = unframed, false
	}},
	{"body", func(r *rand.Rand, w *wire) {
		w.body = pick(r, [][]byte{
			nil, []byte("{}"), []byte("[]"), []byte("null"), []byte("\ufeff{}"), []byte("\xff\xfe{\x00}\x00"), {0}, []byte("{"), []byte(`{"a":1}{"b":2}`), []byte("{}\x00"), []byte(`{"to":"0771234567",}`),
			[]byte("a=b&c=d"), []byte("--x\r\nContent-Disposition: form-data; name=a\r\n\r\nb\r\n--x--"), []byte("<?xml version='1.0'?><!DOCTYPE a [<!ENTITY x SYSTEM 'file:///etc/passwd'>]><a>&x;</a>"), []byte(`{"privacy_mode":"x"}`),
			[]byte(strings.Repeat(`{"a":`, 9_000) + "1" + strings.Repeat("}", 9_000)), []byte(`{"send_method":"single","send_method":"single"}`), []byte(`{"\u0073end_method":"single","send_method":"single"}`),
		})
	}},
	{"noise", func(r *rand.Rand, w *wire) {
		w.body = slices.Clone(w.body)
		if len(w.body) == 0 {
			w.body = []byte("x")
		}
		for range 1 + r.IntN(4) {
			switch at := r.IntN(len(w.body)); r.IntN(3) {
			case 0:
				w.body[at] = byte(r.Uint32())
			case 1:
				w.body = slices.Insert(w.body, at, byte(r.Uint32()))
			default:
				w.body = append(w.body[:at:at], w.body[min(len(w.body), at+1+r.IntN(8)):]...)
			}
			if len(w.body) == 0 {
				return
			}
		}
	}},
	{"a big body", func(r *rand.Rand, w *wire) {
		if r.IntN(6) > 0 { // they are dear
			w.set("Content-Encoding", "gzip")
			return
		}
		name := pick(r, slices.Sorted(maps.Keys(heavy())))
		w.body = heavy()[name]
		w.how = append(w.how, name)
		if len(w.body) > 3<<20 {
			w.sound = false // a response may come, and the connection end, before all is written
		}
	}},
	{"noise in all of it", func(_ *rand.Rand, w *wire) { w.version, w.sound, w.free = "\x16\x03\x01\x02\x00", false, true }},
}
