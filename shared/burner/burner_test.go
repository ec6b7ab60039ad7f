package burner

import (
	"errors"
	"fmt"
	"net/mail"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"svcapi/test/enginetest"
	"svcapi/test/must"
)

func TestMain(m *testing.M) { enginetest.Main(m) }

// docs/decisions/look-ups.md#disposable-domains: the judgement about the domain or its nearest judged parent counts.
func TestStore(t *testing.T) {
	db, tables := enginetest.Client(t)
	s := NewStore(db, tables.Projects)
	ctx := t.Context()
	deep := strings.Repeat("a.", 118) + "deep.example"

	many := make([]string, 120)
	for i := range many {
		many[i] = fmt.Sprintf("many-%03d.example", i)
	}
	for _, change := range []error{
		s.Put(ctx, "one", Disposable, "a.example", "b.c.example"),
		s.Put(ctx, "one", Disposable, "a.example"), // again
		s.Put(ctx, "one", Disposable, many...),
		s.Put(ctx, "one", Allowed, "y.a.example", "fine.example"),
		s.Put(ctx, "one", Disposable, "z.y.a.example"),
		s.Put(ctx, "one", Disposable),
		s.Put(ctx, "two", Disposable, "deep.example", "gone.example"),
		s.Put(ctx, Stage, Allowed, "c.example"),
		s.Remove(ctx, "two", "gone.example", "never.example"),
	} {
		if change != nil {
			t.Fatal(change)
		}
	}
	for _, c := range []struct {
		project, domain string
		want            Judgement
	}{
		{"one", "a.example", Disposable},
		{"one", "x.a.example", Disposable},
		{"one", "x.y.a.example", Allowed}, // the nearest parent counts
		{"one", "x.z.y.a.example", Disposable},
		{"one", "fine.example", Allowed},
		{Stage, "c.example", Allowed},
		{"one", "c.example", None},
		{"one", "b.c.example", Disposable},
		{"one", "ba.example", None},
		{"one", "example", None},
		{"one", "many-119.example", Disposable},
		{"one", "deep.example", None},
		{"two", "a.example", None},
		{"two", "gone.example", None},
		{"two", deep, Disposable},
		{"three", "a.example", None},
	} {
		if got, err := s.Find(ctx, c.project, c.domain); err != nil || got != c.want {
			t.Errorf("%q judges %.40s: %v, %v; want %v", c.project, c.domain, got, err, c.want)
		}
	}
	want := Domains{
		Disposable: append(append([]string{"a.example", "b.c.example"}, many...), "z.y.a.example"),
		Allowed:    []string{"fine.example", "y.a.example"},
	}
	if got, err := s.List(ctx, "one"); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("list is %v, %v", got, err)
	}
	if got, err := s.List(ctx, "three"); err != nil ||
		!reflect.DeepEqual(got, Domains{Disposable: []string{}, Allowed: []string{}}) {
		t.Errorf("empty list is %v, %v", got, err)
	}
	// A failed fetch keeps the packed domains.
	good := Difference{Outcome{Fetched: time.Unix(1, 0).UTC(), Sources: map[string]int{"x": 1}}, []byte("packed")}
	failed := Difference{Outcome: Outcome{Fetched: good.Fetched, Failure: "none"}}
	must.Succeed(t, errors.Join(s.PutDifference(ctx, good), s.PutDifference(ctx, failed)))
	failed.Packed = good.Packed
	got, err := s.List(ctx, Stage)
	if err != nil || !reflect.DeepEqual(got, Domains{[]string{}, []string{"c.example"}, failed}) ||
		got.Difference.Age(time.Unix(61, 0)) != time.Minute {
		t.Errorf("%+v, %v", got, err)
	}
}

var (
	local64 = strings.Repeat("a", 64)
	label63 = strings.Repeat("b", 63)
)

// docs/decisions/look-ups.md#email-addresses: one RFC 5322 addr-spec, a domain of at least two labels, IDNA accepted
// and normalised to lower-case ASCII.
var validAddresses = []struct{ address, domain, source string }{
	// Atoms: RFC 5322, 3.2.3
	{"simple@example.com", "example.com", "RFC 5322, 3.4.1"},
	{"A@EXAMPLE.COM", "example.com", "RFC 1035, 2.3.3: case does not matter in a domain"},
	{"very.common@example.com", "example.com", "RFC 5322, 3.2.3: dot-atom"},
	{"azAZ09@example.com", "example.com", "RFC 5322, 3.2.3: the first and last letters and digits are atext"},
	{"-first@example.com", "example.com", "RFC 5322, 3.2.3: - is atext"},
	{"user%example.com@example.org", "example.org", "RFC 5322, 3.2.3: % is atext"},
	{"mailhost!username@example.org", "example.org", "RFC 5322, 3.2.3: ! is atext"},
	{"customer/department=shipping@example.com", "example.com", "RFC 3696, 3"},
	{"!#$%&'*+-/=?^_`{|}~@example.com", "example.com", "RFC 5322, 3.2.3: all of atext"},
	{"!def!xyz%abc@example.com", "example.com", "RFC 3696, 3"},
	{local64 + "@example.com", "example.com", "RFC 5321, 4.5.3.1.1: 64 octets"},
	// Quoted strings: RFC 5322, 3.2.4
	{`""@example.com`, "example.com", "RFC 5322, 3.2.4: *qcontent may be empty"},
	{`" "@example.org`, "example.org", "RFC 5321, 4.1.2: qtextSMTP has the space"},
	{`"!~"@example.com`, "example.com", "RFC 5322, 3.2.4: the first and last printable characters are qtext"},
	{`"john doe"@example.com`, "example.com", "RFC 5321, 4.1.2: qtextSMTP has the space"},
	{`"john..doe"@example.org`, "example.org", "RFC 5322, 3.2.4: dots are qtext"},
	{`"a@b"@example.com`, "example.com", "RFC 5322, 3.2.4: @ is qtext"},
	{`"a\"b"@example.com`, "example.com", "RFC 5322, 3.2.1: quoted-pair"},
	{`"a\\b"@example.com`, "example.com", "RFC 5322, 3.2.1: quoted-pair"},
	{`"Joe.\\Blow"@example.com`, "example.com", "RFC 3696, 3, erratum 246"},
	{`"\a"@example.com`, "example.com", "RFC 5322, 3.2.1: any VCHAR may be quoted"},
	{`"\ "@example.com`, "example.com", "RFC 5322, 3.2.1: white space may be quoted"},
	{`"(),:;<>[]"@example.com`, "example.com", "RFC 5322, 3.2.3: specials, quoted"},
	{`"very.(),:;<>[]\".VERY.\"very@\\ \"very\".unusual"@strange.example.com`, "strange.example.com", "RFC 5322, 3.2.4"},
	{`"` + strings.Repeat("a", 62) + `"@example.com`, "example.com", "RFC 5321, 4.5.3.1.1: 64 octets with the quotes"},
	// International local parts: RFC 6531, 3.3, with the characters of RFC 6532, 3.1
	{"用户@例え.jp", "xn--r8jz45g.jp", "RFC 6531, 3.3: UTF8-non-ascii is atext"},
	{"ü@example.com", "example.com", "RFC 6532, 3.1: the first two-byte letters"},
	{"a.अ.b+ж@example.com", "example.com", "RFC 6531, 3.3: among ASCII atext"},
	{"ශ්\u200dරී@example.com", "example.com", "RFC 6532, 3.1: a joiner within a word of Sinhala"},
	{"😀@example.com", "example.com", "RFC 6532, 3.1: UTF8-4"},
	{`"用 户"@example.com`, "example.com", "RFC 6531, 3.3: UTF8-non-ascii is qtextSMTP"},
	{strings.Repeat("ü", 32) + "@example.com", "example.com", "RFC 5321, 4.5.3.1.1: 64 octets"},
	// Domains
	{"a@b.c", "b.c", "RFC 1035, 2.3.1: a label is one character or more"},
	{"a@sub.example.com", "sub.example.com", "RFC 1035, 2.3.1"},
	{"a@a.b.c.d.e.f.g.example", "a.b.c.d.e.f.g.example", "RFC 1035, 2.3.1"},
	{"a@example-one.com", "example-one.com", "RFC 1035, 2.3.1: hyphens inside"},
	{"a@ex--ample.com", "ex--ample.com", "RFC 5890, 2.3.1: reserved LDH labels are LDH labels"},
	{"a@3com.com", "3com.com", "RFC 1123, 2.1"},
	{"a@example.c0m", "example.c0m", "RFC 3696, 2: not all of the last label's characters are digits"},
	{"a@" + label63 + ".com", label63 + ".com", "RFC 1035, 2.3.4: 63 octets"},
	{"a@" + strings.Repeat("a.", 120) + "com", strings.Repeat("a.", 120) + "com", "RFC 1035, 2.3.4"},
	{"a@" + strings.Repeat("a.", 125) + "com", strings.Repeat("a.", 125) + "com",
		"RFC 1035, 2.3.4: 255 octets on the wire, 253 in text"},
	{"a@" + strings.Repeat("\u00ad", 244) + "example.com", "example.com",
		"UTS 46, 4: soft hyphens are ignored, in 255 characters"},
	// IDNA: RFC 5890 to 5893, UTS 46
	{"a@bücher.example", "xn--bcher-kva.example", "RFC 5891, 4.4"},
	{"a@BÜCHER.example", "xn--bcher-kva.example", "UTS 46, 4: case is folded"},
	{"a@xn--bcher-kva.example", "xn--bcher-kva.example", "RFC 5890, 2.3.2.1: A-label"},
	{"a@XN--BCHER-KVA.example", "xn--bcher-kva.example", "RFC 5890, 2.3.2.1"},
	{"a@straße.example", "xn--strae-oqa.example", "UTS 46, 4: not transitional"},
	{"a@例え.テスト", "xn--r8jz45g.xn--zckzah", "RFC 5891, 4.4"},
	{"a@உதாரணம்.பரிட்சை", "xn--zkc6cc5bi7f6e.xn--hlcj6aya9esc7a", "RFC 5891, 4.4"},
	{"a@උදාහරණය.ලංකා", "xn--ozc8dl9bd7c5d.xn--fzc2c9e2c", "RFC 5891, 4.4"},
	{"a@пример.рф", "xn--e1afmkfd.xn--p1ai", "RFC 5891, 4.4"},
	{"a@مثال.إختبار", "xn--mgbh0fb.xn--kgbechtv", "RFC 5893: right to left"},
	{"a@例子。测试", "xn--fsqu00a.xn--0zwm56d", "UTS 46, 4: the ideographic full stop is a dot"},
	{"a@ｅｘａｍｐｌｅ.com", "example.com", "UTS 46, 4: full width is mapped"},
}

// invalidAddresses has the addresses that are no RFC 5322 addr-spec of a domain with two labels, by their fault.
var invalidAddresses = map[error][]string{
	errAt:      {"", "a", "a@", "example.com", "a.example.com@", "undisclosed-recipients:;", "a＠example.com"},
	errNoLocal: {"@", "@example.com"},
	errOneAt:   {"a@b@example.com", "a@@example.com"},
	errDots:    {".a@example.com", "a.@example.com", "a..b@example.com", ".@example.com"},
	// RFC 5322, 3.2.3: specials and controls; 4.4: obsolete local parts; RFC 6068: a URI
	errLocal: {
		"a,b@example.com", "a;b@example.com", "a:b@example.com", "a[b@example.com", "a]b@example.com", `a\b@example.com`,
		`a\@b@example.com`, `a"b@example.com`, `a"b"c@example.com`, `a"b"@example.com`, `a."b"@example.com`,
		"a\x00@example.com", "a\x7f@example.com", "\x7f@example.com", "mailto:a@example.com",
	},
	// RFC 5322, 3.2.4: not closed, or not the whole local part; 3.2.2: folding; 4.1: obsolete forms
	errQuoted: {
		`"a@example.com`, `"a\"@example.com`, `"`, `"\`, `"a"b@example.com`, `"a".b@example.com`, "\"a\tb\"@example.com",
		"\"a\r\n b\"@example.com", "\"a\x00b\"@example.com", "\"\\\x01\"@example.com", "\"\u0080\"@example.com",
		`"\ü"@example.com`, // RFC 6531 does not extend quoted-pairSMTP
	},
	errUnseen: {"\u0080@example.com", "a\u200b@example.com", "\u202ea@example.com", "a\ufffd@example.com",
		"a\xff@example.com", "\u0378@example.com"},
	errLocalLen: {local64 + "a@example.com", strings.Repeat("ü", 33) + "@example.com"},
	// RFC 5322, 3.4: name-addr, angle-addr; 3.2.2: comments and white space; 3.4.1: domain literals
	errBare:    {"John Doe <john@example.com>", "<john@example.com>", "a<b@example.com", "a>b@example.com"},
	errComment: {"(comment)a@example.com", "a(comment)@example.com", "a@(comment)example.com", "a@example.com(comment)"},
	errSpace: {
		" ", "a b@example.com", " a@example.com", "a @example.com", "a@ example.com", "a@exam ple.com", "a@example.com ",
		"a@example.com\r\n", "a\r\n @example.com", "a\t@example.com", "\u00a0a@example.com", "a@example.com, b@example.com",
	},
	errLiteral: {"a@[192.0.2.1]", "a@[IPv6:2001:db8::1]", "a@[]"},
	// RFC 1034, 3.1; RFC 1035, 2.3.4; RFC 1123, 2.1; RFC 3696, 2
	errUnderscore: {"a@exa_mple.com", "a@_dmarc.example.com"},
	errLastDot:    {"a@example.com.", "a@example.com..", "a@.", "a@例え。"},
	errEmptyLabel: {"a@.com", "a@.example.com", "a@example..com", "a@xn--.com"},
	errLabels:     {"a@localhost", "a@com", "a@例え"},
	errHyphen:     {"a@-example.com", "a@example-.com", "a@example.-com", "a@-.com"},
	errLabelLen:   {"a@" + label63 + "b.com", "a@" + strings.Repeat("ü", 60) + ".com"},
	errDomainLen:  {"a@" + strings.Repeat("a.", 126) + "com", "a@" + strings.Repeat("a.", 200) + "com"},
	errNumeric:    {"a@123.456", "a@192.0.2.1", "a@example.１２"},
	// RFC 1123, 2.1: LDH; RFC 5890, 5892 and 5893: no punycode, joiners, format characters, mixed directions; RFC 3629
	errDomain: {
		"a@exa!mple.com", "a@exa+mple.com", "a@exa/mple.com", "a@example.com:25", "a@example,com", `a@"example".com`,
		"a@exa\x00mple.com", "a@\xff.com", "a@\ufffd.com", "a@\u200d.com", "a@ex\u202eample.com", "a@xn--\u00fc.com",
		"a@xn--0.com", "a@xn--a.com", "a@اa.com",
	},
}

func TestValidAddresses(t *testing.T) {
	for _, c := range validAddresses {
		if domain, err := Domain(c.address); err != nil || domain != c.domain {
			t.Errorf("%q: %q, %v; wants %q (%s)", c.address, domain, err, c.domain, c.source)
		}
	}
}

// TestFaults checks that an invalid address gets the error that names its fault.
func TestFaults(t *testing.T) {
	for fault, addresses := range invalidAddresses {
		for _, address := range addresses {
			if domain, err := Domain(address); !errors.Is(err, fault) {
				t.Errorf("%q: %q, %v, want: %v", address, domain, err, fault)
			}
		}
	}
	if _, err := ASCII(""); !errors.Is(err, errLabels) {
		t.Errorf("no domain at all: %v", err)
	}
}

// FuzzAddress checks what holds for every text: no panic; a domain that is
// taken is lower-case ASCII, is its own normal form, and the standard library
// takes the address too where the domain was ASCII.
func FuzzAddress(f *testing.F) {
	for _, c := range validAddresses {
		f.Add(c.address)
	}
	for _, addresses := range invalidAddresses {
		for _, address := range addresses {
			f.Add(address)
		}
	}
	f.Fuzz(func(t *testing.T, address string) {
		domain, err := Domain(address)
		if err != nil {
			return
		}
		if again, err := ASCII(domain); err != nil || again != domain {
			t.Errorf("%q: the normal form of %q is %q, %v", address, domain, again, err)
		}
		if strings.ToLower(domain) != domain || len(domain) > 253 || strings.Count(domain, ".") < 1 {
			t.Errorf("%q: %q is no normal domain", address, domain)
		}
		if utf8.RuneCountInString(address) == len(address) {
			if _, err := mail.ParseAddress(address); err != nil && !strings.Contains(address, "..") &&
				!strings.HasPrefix(address, `""`) {
				t.Errorf("%q is accepted, the standard library returns %v", address, err)
			}
		}
	})
}
