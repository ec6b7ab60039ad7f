package acceptance

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"
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
	examples []example
	tenants  []*tenant
}

// request is the one of an index. Every third of them is as openapi.yaml describes it but for its values.
func (g *generator) request(index int) request {
	r := rand.New(rand.NewPCG(g.seed, uint64(index)))
	e := pick(r, g.examples)
	if strings.Contains(e.path, "/utilities/pdf/") && r.IntN(12) > 0 { // a document takes a hundred times as long
		e = pick(r, g.examples)
	}
	q := request{
		method: e.method, path: e.target, as: pick(r, g.tenants).dev, header: map[string]string{},
		about: fmt.Sprintf("SEED=%d AT=%d", g.seed, index),
	}
	if e.body != nil {
		spoil(r, &q, e.body)
		if r.IntN(20) == 0 {
			hush(r, &q, e.body)
			return q
		}
	}
	if r.IntN(3) > 0 {
		for range 1 + r.IntN(3) {
			m := pick(r, mutations)
			m.do(r, &q)
			q.about += ", " + m.name
		}
	}
	return q
}

// hush requests privacy, by the header or by the field, for a payload that the search through the logs looks for.
func hush(r *rand.Rand, q *request, body any) {
	fields, _ := body.(map[string]any) // every example is an object
	fields = maps.Clone(fields)
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if _, isText := fields[name].(string); isText && r.IntN(2) == 0 {
			fields[name] = private
		}
	}
	fields["note"] = private
	if r.IntN(2) == 0 && strings.Contains(q.path, "/utilities/") {
		fields["privacy_mode"] = pick(r, []any{true, "yes", 1})
	} else {
		q.header["X-Privacy-Mode"] = pick(r, []string{"1", "true", "TRUE"})
	}
	q.body = object(fields)
	q.about += ", privacy"
}

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

// texts are strings that something may trip over: scripts, forms that look alike or become alike, control characters,
// and what is code elsewhere.
var texts = []string{
	"", " ", "\x00", "a\x00b", "\r\nX-Injected: 1", "\u202eevil\u202c", "\u200b", "\ufeff", "\ufffe", "é", "e\u0301", "ﬁ",
	"Å", "\u212b", "А", "а@еxample.com",
	"user@exаmple.com", "user@xn--exmple-4nf.com", "user@bücher.example", "user@BÜCHER.example", "user@faß.de",
	"user@example。com", "user@[127.0.0.1]",
	"\"a b\"@example.com", "a@b", "a@" + strings.Repeat("x", 64) + ".com", strings.Repeat("a.", 120) +
		"a@example.com", "user@mailinator.com", "a@b@c.com",
	"👨‍👩‍👧‍👦", strings.Repeat("😀", 70), strings.Repeat("ක", 202), strings.Repeat("a", 460), strings.Repeat("€",
		230), strings.Repeat("Z\u0351", 40), "ﷺ", "İ", "ı", "ǅ",
	"192.0.2.1", "8.8.8.8", "::1", "::ffff:8.8.8.8", "fe80::1%eth0", "0x7f.1", "127.1", "1.2.3.4 ", "１.２.３.４",
	"2001:db8::1", "112.134.0.1", "010.8.8.8",
	"0771234567", "+94771234567", "0771234567\n", "٠٧٧١٢٣٤٥٦٧", "94771234567", "ip-api", "../../etc/passwd",
	"${jndi:ldap://x}", "{{7*7}}", "' OR 1=1--", "<script>alert(1)</script>",
	"null", "true", "NaN", "-0", "1e999", "#ff00ff", "##ff00ff", "EAN13", "C39+", "c128", "PNG", "4006381333931",
	"12345-6789", "single", "bulk_same", "L",
	"PHA+YTwvcD4=", "=", "<p>" + strings.Repeat("<div>",
		600), "<img src=file:///etc/passwd>", "<iframe src=http://169.254.169.254/></iframe>",
	"<style>@page{size:1mm}</style>x",
}

// rawValues are JSON values that are written unchanged.
var rawValues = []string{
	"null", "true", "0", "-0", "-0.0", "1e0", "80.0", "8e1", "4.0000000000000000000001", "3.9999999999999999999999",
	"1e999999", "-1e999999", "1e-999999", "0e999999", "9007199254740993",
	"18446744073709551616", "0.1e1", "[]", "{}", "[[[[]]]]", `"\ud800"`, `"\udc00\ud800"`, `"\ud83d\ude00"`, `"\u0000"`,
	"\"\xff\"", "\"\xc0\xaf\"", "\"\xed\xa0\x80\"", "\"\x01\"", "01", "+1", ".5", "1.", "NaN", "Infinity", "0x10",
	"'a'", `"a`, "undefined", `{"a":1,"a":2}`, `{"a":1,"\u0061":2}`, `"\/"`, `"\x"`, "1 2",
}

// spoil writes a body, as it is or with some of its values replaced by others.
func spoil(r *rand.Rand, q *request, body any) {
	text, _ := json.Marshal(body) // an example of openapi.yaml
	if q.body = string(text); r.IntN(4) == 0 {
		return
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
			name = pick(r, []string{"provider", "check_cost", "is_base64", "quiet_zone", "margins", "width_factor", "height",
				"size", "margin", "TO", "Message", "__proto__", "recipients", "msg_list", "type", "format"})
			value = []byte(pick(r, rawValues))
		case 3:
			value = []byte("[" + string(value) + "," + pick(r, rawValues) + "]")
		}
		raw[name] = string(value)
		q.about += ", " + name + "=" + string(value[:min(len(value), 60)])
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
	q.body = b.String()
}

// heavy are bodies that cost something to make: made once, sent seldom.
var heavy = sync.OnceValue(func() map[string]string {
	return map[string]string{
		"arrays, 100,000 deep":         `{"message":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + "}",
		"objects, 100,000 deep":        strings.Repeat(`{"a":`, 100_000) + "1" + strings.Repeat("}", 100_000),
		"arrays that never end":        strings.Repeat("[", 1_000_000),
		"a number of 1,000,000 digits": `{"data":"1","height":` + strings.Repeat("9", 1_000_000) + "}",
		"80 with 1,000,000 zeros":      `{"data":"1","height":80.` + strings.Repeat("0", 1_000_000) + "}",
		"an exponent of 100,000 zeros": `{"data":"1","height":8e` + strings.Repeat("0", 100_000) + "1}",
		"100,000 names":                `{` + manyNames(100_000) + `}`,
		"20,000 recipients": `{"send_method":"bulk_same","message":"m","recipients":[` +
			strings.TrimSuffix(strings.Repeat(`"0771234567",`, 20_000), ",") + `]}`,
		"a text of 2 MiB": `{"data":"` + strings.Repeat("x", 2<<20) + `","message":"` +
			strings.Repeat("x", 1<<20) + `"}`,
		"4 MiB": `{"send_method":"single"}` + strings.Repeat(" ", 4<<20-24),
	}
})

func manyNames(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"n%d":%d,`, i, i)
	}
	return strings.TrimSuffix(b.String(), ",")
}

// mutation is one thing to do to a request. Every mutated request is still HTTP, because API Gateway refuses all
// else; local/gateway tests the responses to that.
type mutation struct {
	name string
	do   func(r *rand.Rand, q *request)
}

var mutations = []mutation{
	{"method", func(r *rand.Rand, q *request) {
		q.method = pick(r, []string{"GET", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "POST", "post", "M-SEARCH"})
	}},
	{"path", func(r *rand.Rand, q *request) {
		at := r.IntN(len(q.path) + 1)
		q.path = q.path[:at] + pick(r,
			[]string{"%2e%2e/", "../", "%2F", "%5c", "%00", "%c0%af", "%ff", ";x=1", "//", "/./", "%252e",
				"%0d%0aX-A:%20b", "%20", "+", "?a=b&a=%zz&%00=1", "%E2%80%AE", "%C2%A0", "%ef%bc%8f", ":", "@", "*", "~", "%2531"}) +
			q.path[at:]
	}},
	{"path, ending", func(r *rand.Rand, q *request) {
		q.path += pick(r, []string{"/", "//", "/.", "/..", ".json", "/%2e", "%20", ";", "/1", "/0", "/-1", "/1e3", "/LKR",
			"/" + strings.Repeat("9", 40)})
	}},
	{"segment", func(r *rand.Rand, q *request) {
		segments := strings.Split(q.path, "/")
		segments[len(segments)-1] = pick(r,
			[]string{"USD", "usd", "LKR-SELL", "lkr-buy", "XXX", "%55SD", "US", "USDT", "%E2%84%AA", "1", "0",
				"0.00000001", "999999999999999.99999999", "1e5", "%31", "-1", "1.123456789", "LKR%2DBUY", "codes", "%0a"})
		q.path = strings.Join(segments, "/")
	}},
	{"a header line", func(r *rand.Rand, q *request) {
		name := pick(r, []string{"X-ENV", "X-Privacy-Mode", "X-Confirm-Send", "Idempotency-Key", "Origin", "X-SVC-Client",
			"Accept", "Content-Type",
			"Range", "If-None-Match", "X-HTTP-Method-Override", "X-Original-URL", "X-Forwarded-Host", "X-Amzn-Trace-Id",
			"X-SVC-Request-ID", "Cookie",
			"Authorization", "Via"})
		q.header[name] = pick(r, append([]string{"1", "TRUE", "dev", "production", "playground", "application/pdf",
			"multipart/form-data; boundary=x",
			"text/plain; charset=utf-16", "*/*;q=0", "bytes=0-", "key-1", strings.Repeat("k",
				129), "\xff\xfe", "https://docs.example.com",
			"Basic " + base64.StdEncoding.EncodeToString([]byte(q.as.ID+
				":x")), "AWS4-HMAC-SHA256 Credential=AKID/20260101/x/execute-api/aws4_request"},
			texts[5], texts[9]))
	}},
	{"credentials", func(r *rand.Rand, q *request) {
		change := pick(r, []func(string) string{
			func(string) string { return "" }, strings.ToUpper,
			func(v string) string { return v + "x" },
			func(v string) string { return v[:max(0, len(v)-1)] }, // an earlier change may have emptied it
			func(v string) string { return strings.Replace(v, "s", "ѕ", 1) },
			func(v string) string { return strings.Repeat(v[:min(len(v), 100)], 20) }, // API Gateway takes 10 KB of headers
			func(v string) string { return "\"" + v + "\"" },
			func(v string) string { return v + ", " + v },
			func(string) string { return "svc_../../x_aaaaaaaa" },
			func(string) string { return "svc_nobody-here_aaaaaaaa" },
		})
		field := pick(r, []*string{&q.as.ID, &q.as.Secret})
		*field = change(*field)
	}},
	{"credentials, swapped", func(_ *rand.Rand, q *request) { q.as.ID, q.as.Secret = q.as.Secret, q.as.ID }},
	{"body", func(r *rand.Rand, q *request) {
		q.body = pick(r, []string{
			"", "{}", "[]", "null", "\ufeff{}", "\xff\xfe{\x00}\x00", "\x00", "{", `{"a":1}{"b":2}`, "{}\x00",
			`{"to":"0771234567",}`, "a=b&c=d",
			"--x\r\nContent-Disposition: form-data; name=a\r\n\r\nb\r\n--x--",
			"<?xml version='1.0'?><!DOCTYPE a [<!ENTITY x SYSTEM 'file:///etc/passwd'>]><a>&x;</a>", `{"privacy_mode":"x"}`,
			strings.Repeat(`{"a":`, 9_000) + "1" +
				strings.Repeat("}", 9_000), `{"send_method":"single","\u0073end_method":"single"}`,
		})
	}},
	{"noise", func(r *rand.Rand, q *request) {
		body := []byte(q.body + "x")
		for range 1 + r.IntN(4) {
			switch at := r.IntN(len(body)); r.IntN(3) {
			case 0:
				body[at] = byte(r.Uint32())
			case 1:
				body = slices.Insert(body, at, byte(r.Uint32()))
			default:
				body = append(body[:at:at], body[min(len(body)-1, at+1+r.IntN(8)):]...)
			}
		}
		q.body = string(body)
	}},
	{"a big body", func(r *rand.Rand, q *request) {
		if r.IntN(6) > 0 { // big bodies take long
			q.header["Content-Encoding"] = "gzip"
			return
		}
		q.body = heavy()[pick(r, slices.Sorted(maps.Keys(heavy())))]
	}},
}
