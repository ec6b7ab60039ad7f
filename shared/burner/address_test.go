package burner

import (
	"errors"
	"net/mail"
	"strings"
	"testing"
	"unicode/utf8"
)

var (
	local64 = strings.Repeat("a", 64)
	label63 = strings.Repeat("b", 63)
)

// docs/decisions.md#email-addresses: one RFC 5322 addr-spec, a domain of at least two labels, IDNA accepted and
// normalised to lower-case ASCII.
var validAddresses = []struct{ address, domain, source string }{
	// Atoms: RFC 5322, 3.2.3
	{"simple@example.com", "example.com", "RFC 5322, 3.4.1"},
	{"a@example.com", "example.com", "RFC 5322, 3.2.3: an atom is one character or more"},
	{"A@EXAMPLE.COM", "example.com", "RFC 1035, 2.3.3: case does not matter in a domain"},
	{"very.common@example.com", "example.com", "RFC 5322, 3.2.3: dot-atom"},
	{"a.b.c.d.e@example.com", "example.com", "RFC 5322, 3.2.3: dot-atom"},
	{"0@example.com", "example.com", "RFC 5322, 3.2.3: digits are atext"},
	{"12345@example.com", "example.com", "RFC 5322, 3.2.3: digits are atext"},
	{"azAZ09@example.com", "example.com", "RFC 5322, 3.2.3: the first and last letters and digits are atext"},
	{"1.2.3@example.com", "example.com", "RFC 5322, 3.2.3"},
	{"first+tag@example.com", "example.com", "RFC 5322, 3.2.3: + is atext"},
	{"first-last@example.com", "example.com", "RFC 5322, 3.2.3: - is atext"},
	{"-first@example.com", "example.com", "RFC 5322, 3.2.3: - is atext"},
	{"first-@example.com", "example.com", "RFC 5322, 3.2.3: - is atext"},
	{"first_last@example.com", "example.com", "RFC 5322, 3.2.3: _ is atext"},
	{"____@example.com", "example.com", "RFC 5322, 3.2.3: _ is atext"},
	{"!@example.com", "example.com", "RFC 5322, 3.2.3: ! is atext"},
	{"#@example.com", "example.com", "RFC 5322, 3.2.3: # is atext"},
	{"$@example.com", "example.com", "RFC 5322, 3.2.3: $ is atext"},
	{"%@example.com", "example.com", "RFC 5322, 3.2.3: % is atext"},
	{"user%example.com@example.org", "example.org", "RFC 5322, 3.2.3: % is atext"},
	{"mailhost!username@example.org", "example.org", "RFC 5322, 3.2.3: ! is atext"},
	{"&@example.com", "example.com", "RFC 5322, 3.2.3: & is atext"},
	{"o'brien@example.com", "example.com", "RFC 5322, 3.2.3: ' is atext"},
	{"*@example.com", "example.com", "RFC 5322, 3.2.3: * is atext"},
	{"a/b@example.com", "example.com", "RFC 5322, 3.2.3: / is atext"},
	{"customer/department=shipping@example.com", "example.com", "RFC 3696, 3"},
	{"a=b@example.com", "example.com", "RFC 5322, 3.2.3: = is atext"},
	{"?@example.com", "example.com", "RFC 5322, 3.2.3: ? is atext"},
	{"^@example.com", "example.com", "RFC 5322, 3.2.3: ^ is atext"},
	{"`@example.com", "example.com", "RFC 5322, 3.2.3: ` is atext"},
	{"{a}@example.com", "example.com", "RFC 5322, 3.2.3: { and } are atext"},
	{"a|b@example.com", "example.com", "RFC 5322, 3.2.3: | is atext"},
	{"~@example.com", "example.com", "RFC 5322, 3.2.3: ~ is atext"},
	{"!#$%&'*+-/=?^_`{|}~@example.com", "example.com", "RFC 5322, 3.2.3: all of atext"},
	{"!def!xyz%abc@example.com", "example.com", "RFC 3696, 3"},
	{"$A12345@example.com", "example.com", "RFC 3696, 3"},
	{local64 + "@example.com", "example.com", "RFC 5321, 4.5.3.1.1: 64 octets"},
	// Quoted strings: RFC 5322, 3.2.4
	{`"quoted"@example.com`, "example.com", "RFC 5322, 3.2.4"},
	{`""@example.com`, "example.com", "RFC 5322, 3.2.4: *qcontent may be empty"},
	{`" "@example.org`, "example.org", "RFC 5321, 4.1.2: qtextSMTP has the space"},
	{`"!~"@example.com`, "example.com", "RFC 5322, 3.2.4: the first and last printable characters are qtext"},
	{`"john doe"@example.com`, "example.com", "RFC 5321, 4.1.2: qtextSMTP has the space"},
	{`"john..doe"@example.org`, "example.org", "RFC 5322, 3.2.4: dots are qtext"},
	{`".a."@example.org`, "example.org", "RFC 5322, 3.2.4: dots are qtext"},
	{`"a@b"@example.com`, "example.com", "RFC 5322, 3.2.4: @ is qtext"},
	{`"Abc@def"@example.com`, "example.com", "RFC 3696, 3"},
	{`"Fred Bloggs"@example.com`, "example.com", "RFC 3696, 3"},
	{`"a\"b"@example.com`, "example.com", "RFC 5322, 3.2.1: quoted-pair"},
	{`"a\\b"@example.com`, "example.com", "RFC 5322, 3.2.1: quoted-pair"},
	{`"Joe.\\Blow"@example.com`, "example.com", "RFC 3696, 3, erratum 246"},
	{`"\a"@example.com`, "example.com", "RFC 5322, 3.2.1: any VCHAR may be quoted"},
	{`"\ "@example.com`, "example.com", "RFC 5322, 3.2.1: white space may be quoted"},
	{`"(),:;<>[]"@example.com`, "example.com", "RFC 5322, 3.2.3: specials, quoted"},
	{`"very.(),:;<>[]\".VERY.\"very@\\ \"very\".unusual"@strange.example.com`, "strange.example.com", "RFC 5322, 3.2.4"},
	{`"` + strings.Repeat("a", 62) + `"@example.com`, "example.com", "RFC 5321, 4.5.3.1.1: 64 octets with the quotes"},
	// Domains
	{"a@b.c", "b.c", "RFC 1035, 2.3.1: a label is one character or more"},
	{"a@sub.example.com", "sub.example.com", "RFC 1035, 2.3.1"},
	{"a@a.b.c.d.e.f.g.example", "a.b.c.d.e.f.g.example", "RFC 1035, 2.3.1"},
	{"a@example-one.com", "example-one.com", "RFC 1035, 2.3.1: hyphens inside"},
	{"a@ex--ample.com", "ex--ample.com", "RFC 5890, 2.3.1: reserved LDH labels are LDH labels"},
	{"a@1.example", "1.example", "RFC 1123, 2.1: a label may begin with a digit"},
	{"a@3com.com", "3com.com", "RFC 1123, 2.1"},
	{"a@123.example", "123.example", "RFC 5322, 3.4.1: dot-atom"},
	{"a@example.c0m", "example.c0m", "RFC 3696, 2: not all of the last label's characters are digits"},
	{"a@EXAMPLE.Co.Uk", "example.co.uk", "RFC 1035, 2.3.3"},
	{"a@" + label63 + ".com", label63 + ".com", "RFC 1035, 2.3.4: 63 octets"},
	{"a@" + strings.Repeat("a.", 120) + "com", strings.Repeat("a.", 120) + "com", "RFC 1035, 2.3.4"},
	{"a@" + strings.Repeat("a.", 125) + "com", strings.Repeat("a.", 125) + "com", "RFC 1035, 2.3.4: 255 octets on the wire, 253 in text"},
	{"a@" + strings.Repeat("\u00ad", 244) + "example.com", "example.com", "UTS 46, 4: soft hyphens are ignored, in 255 characters"},
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

var invalidAddresses = []struct{ address, source string }{
	// No addr-spec at all: RFC 5322, 3.4.1
	{"", "RFC 5322, 3.4.1"},
	{" ", "RFC 5322, 3.4.1"},
	{"@", "RFC 5322, 3.4.1"},
	{"a", "RFC 5322, 3.4.1: no @"},
	{"example.com", "RFC 5322, 3.4.1: no @"},
	{"a@", "RFC 5322, 3.4.1: no domain"},
	{"@example.com", "RFC 5322, 3.4.1: no local part"},
	{"a@b@example.com", "RFC 5322, 3.2.3: @ is no atext"},
	{"a@@example.com", "RFC 5322, 3.4.1"},
	{"a.example.com@", "RFC 5322, 3.4.1"},
	// Dots: RFC 5322, 3.2.3
	{".a@example.com", "RFC 5322, 3.2.3: dot-atom-text begins with an atom"},
	{"a.@example.com", "RFC 5322, 3.2.3: dot-atom-text ends with an atom"},
	{"a..b@example.com", "RFC 5322, 3.2.3: no empty atom"},
	{".@example.com", "RFC 5322, 3.2.3"},
	// Specials and controls: RFC 5322, 3.2.3
	{"a b@example.com", "RFC 5322, 3.2.3: space is no atext"},
	{"a,b@example.com", "RFC 5322, 3.2.3: specials"},
	{"a;b@example.com", "RFC 5322, 3.2.3: specials"},
	{"a:b@example.com", "RFC 5322, 3.2.3: specials"},
	{"a<b@example.com", "RFC 5322, 3.2.3: specials"},
	{"a>b@example.com", "RFC 5322, 3.2.3: specials"},
	{"a[b@example.com", "RFC 5322, 3.2.3: specials"},
	{"a]b@example.com", "RFC 5322, 3.2.3: specials"},
	{`a\b@example.com`, "RFC 5322, 3.2.3: specials"},
	{`a\@b@example.com`, "RFC 5322, 3.2.1: quoted-pair only in quotes"},
	{`a"b@example.com`, "RFC 5322, 3.2.3: specials"},
	{`a"b"c@example.com`, "RFC 5322, 3.2.4: a quoted string is the whole local part"},
	{`"a"b@example.com`, "RFC 5322, 3.2.4"},
	{`a"b"@example.com`, "RFC 5322, 3.2.4"},
	{`"a".b@example.com`, "RFC 5322, 4.4: obsolete local part"},
	{`a."b"@example.com`, "RFC 5322, 4.4: obsolete local part"},
	{"a\x00@example.com", "RFC 5322, 3.2.3: controls"},
	{"a\x7f@example.com", "RFC 5322, 3.2.3: controls"},
	{"a\t@example.com", "RFC 5322, 3.2.2: white space"},
	// Quoted strings: RFC 5322, 3.2.4
	{`"a@example.com`, "RFC 5322, 3.2.4: not closed"},
	{`"a\"@example.com`, "RFC 5322, 3.2.4: not closed"},
	{`"`, "RFC 5322, 3.2.4: not closed"},
	{`"\`, "RFC 5322, 3.2.1"},
	{"\"a\tb\"@example.com", "RFC 5322, 3.2.2: folding white space"},
	{"\"a\r\n b\"@example.com", "RFC 5322, 3.2.2: folding white space"},
	{"\"a\x00b\"@example.com", "RFC 5322, 4.1: obsolete qtext"},
	{"\"\\\x01\"@example.com", "RFC 5322, 4.1: obsolete quoted-pair"},
	// Display names, groups, comments, white space, literals: not a bare addr-spec
	{"John Doe <john@example.com>", "RFC 5322, 3.4: name-addr"},
	{"<john@example.com>", "RFC 5322, 3.4: angle-addr"},
	{"undisclosed-recipients:;", "RFC 5322, 3.4: group"},
	{"a@example.com, b@example.com", "RFC 5322, 3.4: mailbox-list"},
	{"mailto:a@example.com", "RFC 6068: a URI"},
	{"(comment)a@example.com", "RFC 5322, 3.2.2: comment"},
	{"a(comment)@example.com", "RFC 5322, 3.2.2: comment"},
	{"a@(comment)example.com", "RFC 5322, 3.2.2: comment"},
	{"a@example.com(comment)", "RFC 5322, 3.2.2: comment"},
	{" a@example.com", "RFC 5322, 3.2.2: white space"},
	{"a@example.com ", "RFC 5322, 3.2.2: white space"},
	{"a @example.com", "RFC 5322, 3.2.2: white space"},
	{"a@ example.com", "RFC 5322, 3.2.2: white space"},
	{"a@exam ple.com", "RFC 5322, 3.2.2: white space"},
	{"a@example.com\r\n", "RFC 5322, 3.2.2: white space"},
	{"a\r\n @example.com", "RFC 5322, 3.2.2: folding white space"},
	{"a@[192.0.2.1]", "RFC 5322, 3.4.1: domain literal"},
	{"a@[IPv6:2001:db8::1]", "RFC 5321, 4.1.3: domain literal"},
	{"a@[]", "RFC 5322, 3.4.1: domain literal"},
	// Domains: RFC 1035, RFC 1123
	{"a@localhost", "one label"},
	{"a@123.456", "RFC 3696, 2: a last label of digits only"},
	{"a@192.0.2.1", "RFC 3696, 2: an address is no domain"},
	{"a@example.１２", "RFC 3696, 2, after UTS 46 mapping"},
	{"a@com", "one label"},
	{"a@example.com.", "RFC 1034, 3.1: trailing dot"},
	{"a@example.com..", "RFC 1034, 3.1"},
	{"a@.", "RFC 1034, 3.1"},
	{"a@.com", "RFC 1034, 3.1: empty label"},
	{"a@.example.com", "RFC 1034, 3.1: empty label"},
	{"a@example..com", "RFC 1034, 3.1: empty label"},
	{"a@-example.com", "RFC 1123, 2.1: a label begins with a letter or digit"},
	{"a@example-.com", "RFC 1123, 2.1: a label ends with a letter or digit"},
	{"a@example.-com", "RFC 1123, 2.1"},
	{"a@-.com", "RFC 1123, 2.1"},
	{"a@exa_mple.com", "RFC 1123, 2.1: LDH"},
	{"a@exa!mple.com", "RFC 1123, 2.1: LDH"},
	{"a@exa+mple.com", "RFC 1123, 2.1: LDH"},
	{"a@exa/mple.com", "RFC 1123, 2.1: LDH"},
	{"a@example.com:25", "RFC 1123, 2.1: LDH"},
	{"a@example,com", "RFC 1123, 2.1: LDH"},
	{`a@"example".com`, "RFC 5322, 3.4.1"},
	{"a@exa\x00mple.com", "RFC 1123, 2.1: LDH"},
	{"a@" + label63 + "b.com", "RFC 1035, 2.3.4: 64 octets"},
	{"a@" + strings.Repeat("a.", 126) + "com", "RFC 1035, 2.3.4: over 253 octets"},
	{local64 + "a@example.com", "RFC 5321, 4.5.3.1.1: 65 octets"},
	// Other than ASCII
	{"ü@example.com", "RFC 5322, 3.2.3: atext is ASCII"},
	{`"ü"@example.com`, "RFC 5322, 3.2.4: qtext is ASCII"},
	{"\u00a0a@example.com", "RFC 5322, 3.2.3"},
	{"a\u200b@example.com", "RFC 5322, 3.2.3"},
	{"a＠example.com", "RFC 5322, 3.4.1: full-width @"},
	{"a@\xff.com", "RFC 3629: no UTF-8"},
	{"a@\ufffd.com", "RFC 5892: the replacement character is disallowed"},
	{"a@\u200d.com", "RFC 5892, A.2: joiner out of place"},
	{"a@ex\u202eample.com", "RFC 5892: format character"},
	{"a@xn--\u00fc.com", "RFC 5890, 2.3.2.1"},
	{"a@xn--0.com", "RFC 5890, 2.3.2.1: no punycode"},
	{"a@xn--a.com", "RFC 5890, 2.3.2.1: no punycode"},
	{"a@xn--.com", "RFC 5890, 2.3.2.1: no punycode"},
	{"a@例え。", "RFC 1034, 3.1: trailing dot"},
	{"a@例え", "one label"},
	{"a@اa.com", "RFC 5893, 2: mixed directions"},
}

func TestValidAddresses(t *testing.T) {
	for _, c := range validAddresses {
		if domain, err := Domain(c.address); err != nil || domain != c.domain {
			t.Errorf("%q: %q, %v; wants %q (%s)", c.address, domain, err, c.domain, c.source)
		}
	}
	if n := len(validAddresses) + len(invalidAddresses); n < 100 {
		t.Errorf("only %d addresses", n)
	}
}

func TestInvalidAddresses(t *testing.T) {
	for _, c := range invalidAddresses {
		if domain, err := Domain(c.address); err == nil {
			t.Errorf("%q is accepted, domain %q (%s)", c.address, domain, c.source)
		}
	}
}

// What is wrong is said, not only that something is.
func TestFaults(t *testing.T) {
	for _, c := range []struct {
		address string
		want    error
	}{
		{"a", errAt}, {"a@", errAt}, {"example.com", errAt},
		{"@example.com", errNoLocal}, {"@", errNoLocal},
		{"a@b@example.com", errOneAt}, {"a@@example.com", errOneAt},
		{".a@example.com", errDots}, {"a.@example.com", errDots}, {"a..b@example.com", errDots},
		{"a,b@example.com", errLocal}, {"mailto:a@example.com", errLocal}, {"a\x00@example.com", errLocal},
		{"a b@example.com", errSpace}, {" a@example.com", errSpace}, {"a@example.com ", errSpace}, {"a@exam ple.com", errSpace},
		{"a@example.com\r\n", errSpace}, {"\u00a0a@example.com", errSpace}, {"a\t@example.com", errSpace},
		{"John Doe <john@example.com>", errBare}, {"<john@example.com>", errBare},
		{"(comment)a@example.com", errComment}, {"a@example.com(comment)", errComment},
		{`"a@example.com`, errQuoted}, {`"a"b@example.com`, errQuoted}, {`"\`, errQuoted},
		{"ü@example.com", errASCII}, {"\u0080@example.com", errASCII}, {"\x7f@example.com", errLocal}, {"a＠example.com", errAt},
		{local64 + "a@example.com", errLocalLen},
		{"a@[192.0.2.1]", errLiteral},
		{"a@exa_mple.com", errUnderscore}, {"a@_dmarc.example.com", errUnderscore},
		{"a@example.com.", errLastDot}, {"a@例え。", errLastDot}, {"a@.", errLastDot},
		{"a@.example.com", errEmptyLabel}, {"a@example..com", errEmptyLabel},
		{"a@localhost", errLabels},
		{"a@-example.com", errHyphen}, {"a@example-.com", errHyphen},
		{"a@" + label63 + "b.com", errLabelLen}, {"a@" + strings.Repeat("ü", 60) + ".com", errLabelLen},
		{"a@" + strings.Repeat("a.", 126) + "com", errDomainLen}, {"a@" + strings.Repeat("a.", 200) + "com", errDomainLen},
		{"a@123.456", errNumeric}, {"a@192.0.2.1", errNumeric},
		{"a@exa!mple.com", errDomain}, {"a@xn--0.com", errDomain}, {"a@\xff.com", errDomain},
	} {
		if _, err := Domain(c.address); !errors.Is(err, c.want) {
			t.Errorf("%q: %v, want: %v", c.address, err, c.want)
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
	for _, c := range invalidAddresses {
		f.Add(c.address)
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
			if _, err := mail.ParseAddress(address); err != nil && !strings.Contains(address, "..") && !strings.HasPrefix(address, `""`) {
				t.Errorf("%q is accepted, the standard library returns %v", address, err)
			}
		}
	})
}
