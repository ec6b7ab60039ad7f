package upstream

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
)

// spellings are the encodings of a secret in a text.
var spellings = map[string]func(string) string{
	"as it is":             func(s string) string { return s },
	"for a query":          url.QueryEscape,
	"for a query, %20":     func(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") },
	"for a path":           url.PathEscape,
	"every byte":           func(s string) string { return each(s, "%%%02X") },
	"every byte, small":    func(s string) string { return each(s, "%%%02x") },
	"JSON":                 quoted,
	"JSON, slashes":        func(s string) string { return strings.ReplaceAll(quoted(s), "/", `\/`) },
	"JSON, every unit":     func(s string) string { return units(s, `\u%04x`) },
	"JSON, every unit, X":  func(s string) string { return units(s, `\u%04X`) },
	"JSON in JSON":         func(s string) string { return quoted(quoted(s)) },
	"slashes in JSON":      func(s string) string { return quoted(strings.ReplaceAll(quoted(s), "/", `\/`)) },
	"JSON in a query":      func(s string) string { return url.QueryEscape(quoted(s)) },
	"a query in JSON":      func(s string) string { return quoted(url.QueryEscape(s)) },
	"quoted by Go":         func(s string) string { q := fmt.Sprintf("%q", s); return q[1 : len(q)-1] },
	"Base64":               func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
	"Base64, no padding":   func(s string) string { return base64.RawStdEncoding.EncodeToString([]byte(s)) },
	"Base64, URL":          func(s string) string { return base64.URLEncoding.EncodeToString([]byte(s)) },
	"Base64, URL, no pad.": func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) },
	"Base64 in JSON": func(s string) string {
		return strings.ReplaceAll(base64.StdEncoding.EncodeToString([]byte(s)), "/", `\/`)
	},
	"Base64 in a query": func(s string) string { return url.QueryEscape(base64.StdEncoding.EncodeToString([]byte(s))) },
}

func quoted(s string) string {
	text, _ := json.Marshal(s)
	return string(text[1 : len(text)-1])
}

func each(s, format string) string {
	var text strings.Builder
	for i := range len(s) {
		fmt.Fprintf(&text, format, s[i])
	}
	return text.String()
}

func units(s, format string) string {
	var text strings.Builder
	for _, unit := range utf16.Encode([]rune(s)) {
		fmt.Fprintf(&text, format, unit)
	}
	return text.String()
}

// TestRedact checks the redacted texts.
func TestRedact(t *testing.T) {
	for _, test := range []struct {
		name    string
		secrets []string
		text    string
		want    string
	}{
		{"no secret", nil, "some text", "some text"},
		{"an empty one", []string{""}, "some text", "some text"},
		{"no occurrence", []string{"s3cret-key"}, `100% of 3+4 \ "some" \u0041 text`, `100% of 3+4 \ "some" \u0041 text`},
		{"one in another", []string{"27ab", "k-27ab-key"}, "key k-27ab-key, user 27ab", "key ***, user ***"},
		{"one before another", []string{"abcdef", "defghi"}, "x abcdefghi y", "x *** y"},
		{"one behind another", []string{"abcdef", "ghijkl"}, "abcdefghijkl", "***"},
		{"an occurrence within itself", []string{"abab"}, "x ababab y", "x *** y"},
		{"short, a word of its own", []string{"27"}, "user_id=27&id=127 27: 270, (27)", "user_id=***&id=127 ***: 270, (***)"},
		{"short, in a longer one", []string{"27", "k27key"}, "key k27key of 27", "key *** of ***"},
		{"short, in Base64", []string{"27"}, "id Mjc= in xMjcx", "id ***= in xMjcx"},
		{"short, escaped", []string{"a/"}, `a%2F a\/ a\u002f`, "*** *** ***"},
		{"basic credentials", []string{"AC12", "t0ken/x"},
			"Basic " + base64.StdEncoding.EncodeToString([]byte("AC12:t0ken/x")) + ".", "Basic ***."},
		{"an escape before it", []string{"Abcd!"}, "5%Abcd%21 and 5%2Abcd!", "5%*** and 5%2***"},
		{"broken escapes", []string{"s3cret-key"}, `%s3cret-key%2 \us3cret-key\u00 \x`, `%***%2 \u***\u00 \x`},
		{"surrogates", []string{"key-😀-key"}, `key-\ud83d\ude00-key, \ud83d`, `***, \ud83d`},
		{"Sinhala", []string{"රහස"}, `රහස \u0dbb\u0dc4\u0dc3 ර`, "*** *** ර"},
		{"no UTF-8", []string{"\xffkey\xfe"}, "\xffkey\xfe %FFkey%FE \xff", "*** *** \xff"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := Redact(test.text, test.secrets); got != test.want {
				t.Errorf("%q without %q is %q, want %q", test.text, test.secrets, got, test.want)
			}
		})
	}
}

// TestRedactOverlapping checks that secrets which contain one another leave nothing of each other, in every spelling,
// whatever the order in which an account gives them.
func TestRedactOverlapping(t *testing.T) {
	values := SecretValues{
		"user_id": "27", "sender": "key/27", "api_key": `k3y/27+"<end> key/27`, "token": `27+"<end> key/27 and more`,
		"empty": "",
	}
	account := Account{Secrets: values}
	for name, spell := range spellings {
		t.Run(name, func(t *testing.T) {
			for range 200 { // orders of the map
				text := "no"
				for _, value := range values {
					text += " | " + spell(value)
				}
				got := Redact(text, account.Redact())
				if rest := strings.Trim(strings.ReplaceAll(got, "%3D", "="), "no |*="); rest != "" {
					t.Fatalf("%q is left of %q: %q", rest, text, got)
				}
			}
		})
	}
}

// TestRedactAnywhere checks that Base64 of a longer text shows no secret within it, wherever the secret begins.
func TestRedactAnywhere(t *testing.T) {
	const key = "s3cret+key/27"
	for before := range 6 {
		for behind := range 6 {
			whole := strings.Repeat("b", before) + key + strings.Repeat("e", behind)
			for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding, base64.RawStdEncoding,
				base64.RawURLEncoding} {
				got := Redact(encoding.EncodeToString([]byte(whole)), []string{key})
				left := strings.Replace(got, mask, "", 1)
				if len(strings.TrimRight(left, "=")) > (before+behind)*8/6 || !strings.Contains(got, mask) {
					t.Errorf("%d before and %d behind: %q", before, behind, got)
				}
			}
		}
	}
}

// FuzzRedact checks that no spelling of a secret is left in a text, by itself or beside and over other secrets.
func FuzzRedact(f *testing.F) {
	f.Add("https://v.example/?key=k3y%2F%2B1&x", "k3y/+1", "pass word", uint64(1))
	f.Add("aab", "aaab", "aaaa", uint64(2))
	f.Add("Authorization: Bearer \xff%\\u", "\x00\n😀", `\\u0`, uint64(3))
	f.Add("%2", "Abcd!", "%25%", uint64(4))
	f.Fuzz(func(t *testing.T, text, a, b string, seed uint64) {
		if strings.Contains(a+b, "*") || !utf8.ValidString(a) || !utf8.ValidString(b) {
			return // the mask may be part of it; JSON has no spelling of it
		}
		rng := rand.New(rand.NewPCG(seed, 0))
		secrets := []string{a, b, b + a, strings.ToValidUTF8(a[:len(a)/2], "") + b}
		for name, spell := range spellings {
			chosen := secrets[rng.IntN(len(secrets))]
			spelled := spell(chosen)
			at := rng.IntN(len(text) + 1)
			// The blank parts the text from the spelling: %2 before Abc is another spelling.
			whole := text[:at] + " " + spelled + " " + text[at:] + a + spelled
			rng.Shuffle(len(secrets), func(i, j int) { secrets[i], secrets[j] = secrets[j], secrets[i] })
			got := Redact(whole, secrets)
			for _, s := range secrets {
				if len(s) >= shortest && strings.Contains(got, s) {
					t.Errorf("%q without %q is %q", whole, secrets, got)
				}
			}
			if len(chosen) >= shortest && strings.Contains(got, " "+spelled+" ") && !strings.Contains(text, spelled) {
				t.Errorf("%s: %q without %q is %q", name, whole, secrets, got)
			}
		}
	})
}

// BenchmarkRedact measures the largest response of a vendor, plain and in the worst case.
func BenchmarkRedact(b *testing.B) {
	secrets := []string{"27", "s3cret-key-of-a-vendor", "t0ken/of+another=vendor"}
	for name, unit := range map[string]string{"plain": "some words ", "escaped": `%5C\u0025\\`, "secrets": secrets[1]} {
		text := strings.Repeat(unit, maxResponse/len(unit))
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				Redact(text, secrets)
			}
		})
	}
}

// An endpoint is a plain https URL, whatever an operator's file holds.
func FuzzEndpoint(f *testing.F) {
	for _, endpoint := range []string{"https://v.example/base", "http://v.example", "https://u:p@v.example",
		"https://v.example?x", "https://[::1%25a]/", "//v.example", "https://v.example#f", "HTTPS://V", "https:v.example"} {
		f.Add(endpoint)
	}
	f.Fuzz(func(t *testing.T, endpoint string) {
		if ValidateEndpoint(endpoint, false) != nil {
			return
		}
		u, err := url.Parse(endpoint)
		if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil ||
			strings.ContainsAny(endpoint, "@") && !strings.Contains(u.Path, "@") {
			t.Errorf("%q is accepted", endpoint)
		}
	})
}

// fakeSecretsManager responds without a network.
type fakeSecretsManager struct{ value string }

func (a *fakeSecretsManager) Do(r *http.Request) (*http.Response, error) {
	body, err := json.Marshal(map[string]string{"Name": "n", "SecretString": a.value})
	return &http.Response{StatusCode: 200, Header: http.Header{},
		Body: io.NopCloser(strings.NewReader(string(body))), Request: r}, err
}

// No error and no printed text contains a piece of a secret.
func FuzzValue(f *testing.F) {
	for _, value := range []string{`{"development":{"v":{"api_key":"k3y-of-the-vendor"}}}`, `{"v":1}`, `[]`, ``, `null`,
		`{"development":{"v":{"k":"a"},"v":{"k":"b"}}}`, "{\"development\":{\"v\":{\"\xff\":\"\xff\"}}}",
		`k3y-of-the-vendor`} {
		f.Add(value)
	}
	fake := &fakeSecretsManager{}
	client := secretsmanager.New(secretsmanager.Options{
		Region: "eu-west-1", HTTPClient: fake, Retryer: aws.NopRetryer{},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "a", SecretAccessKey: "b"}, nil
		}),
	})
	f.Fuzz(func(t *testing.T, value string) {
		fake.value = value
		got, found, err := ReadSecret(t.Context(), client, "n", nil)
		if found != SecretPresent {
			t.Fatalf("%v, %v", found, err)
		}
		if err != nil && len(value) > 8 && strings.Contains(err.Error(), value) {
			t.Errorf("the error contains the value: %v", err)
		}
		for _, fields := range got["development"] {
			values := SecretValues(fields)
			encoded, bad := json.Marshal(values)
			printed := fmt.Sprintf("%v %+v %#v %s %q %d", values, values, values, values, values, values) + string(encoded)
			for name, secret := range values {
				if len(secret) > 8 && !strings.Contains(strings.Join(values.Names(), " "), secret) &&
					strings.Contains(printed, secret) || bad != nil {
					t.Errorf("%s is printed: %s, %v", name, printed, bad)
				}
			}
		}
	})
}
