// Package address reads e-mail addresses and domain names.
package address

import (
	"errors"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

const (
	// maxAddress is the longest address, in characters (openapi.yaml#BurnerEmailRequest).
	maxAddress = 255
	// maxLocal is the longest local part, in octets (RFC 5321, section 4.5.3.1.1).
	maxLocal = 64
)

// What is wrong with an address, or with a domain alone, to follow its name: "email must …".
var (
	errAt       = errors.New("must have an @ and a domain after the local part")
	errOneAt    = errors.New("must have one @ only, outside quotes")
	errNoLocal  = errors.New("must have a local part before the @")
	errLocal    = errors.New("must have a local part that is an RFC 5322 dot-atom or quoted string")
	errLocalLen = errors.New("must have a local part of at most 64 characters")
	errASCII    = errors.New("must have ASCII characters only before the @")
	errDots     = errors.New("must have no dot at the start or end of the local part, and no two in a row")
	errQuoted   = errors.New("must have a quoted local part that ends in a quote right before the @, with quotes and backslashes inside escaped")
	errSpace    = errors.New("must have no white space outside quotes")
	errComment  = errors.New("must have no comments or brackets")
	errBare     = errors.New("must be the address alone, without a name or angle brackets")

	errLiteral    = errors.New("must name a domain, not an address literal")
	errUnderscore = errors.New("must have no underscore in the domain")
	errLastDot    = errors.New("must not end in a dot")
	errEmptyLabel = errors.New("must have no empty label in the domain: a dot stands between two labels")
	errLabels     = errors.New("must have a domain of at least two labels, such as example.com")
	errHyphen     = errors.New("must have no hyphen at the start or end of a label of the domain")
	errLabelLen   = errors.New("must have labels of at most 63 characters in the domain, in their ASCII form")
	errDomainLen  = errors.New("must have a domain of at most 253 characters, in its ASCII form")
	errNumeric    = errors.New("must not have digits only in the domain's last label")
	errDomain     = errors.New("must have a domain of letters, digits, hyphens and dots, or a valid internationalised one")
)

// The lengths of a domain and of its labels, in octets (RFC 1035, section 2.3.4).
const (
	maxDomain = 253
	maxLabel  = 63
)

// sign is a character that tells what is wrong with the text it stands in.
type sign struct {
	chars string
	is    error
}

const whiteSpace = " \t\r\n\v\f\u00a0"

var (
	localSigns  = []sign{{"<>", errBare}, {"()", errComment}, {whiteSpace, errSpace}}
	domainSigns = []sign{{"<>", errBare}, {"()", errComment}, {whiteSpace, errSpace}, {"_", errUnderscore}}
)

// find returns what the first sign that stands in the text says, or otherwise.
func find(text string, signs []sign, otherwise error) error {
	for _, s := range signs {
		if strings.ContainsAny(text, s.chars) {
			return s.is
		}
	}
	return otherwise
}

// Domain parses one RFC 5322 addr-spec, in today's grammar (no obsolete
// forms), without comments, folding white space and domain literals. It returns
// the domain as lower-case ASCII, at least two labels of it. The error says
// what is wrong.
func Domain(address string) (string, error) {
	local := localPart(address)
	domain, ok := strings.CutPrefix(address[local:], "@")
	switch {
	case local == 0 || !ok:
		return "", localFault(address)
	case local > maxLocal:
		return "", errLocalLen
	case domain == "":
		return "", errAt
	case strings.HasPrefix(domain, "["):
		return "", errLiteral
	case strings.Contains(domain, "@"):
		return "", find(domain, localSigns, errOneAt)
	}
	return ASCII(domain)
}

// localFault says why an address does not begin with a local part and an @.
func localFault(address string) error {
	before, _, at := strings.Cut(address, "@")
	switch {
	case strings.HasPrefix(address, `"`):
		return errQuoted
	case !at:
		return find(address, localSigns, errAt)
	case before == "":
		return errNoLocal
	}
	otherwise := errLocal
	switch {
	case strings.ContainsFunc(before, func(r rune) bool { return r >= utf8.RuneSelf }):
		otherwise = errASCII
	case strings.HasPrefix(before, "."), strings.HasSuffix(before, "."), strings.Contains(before, ".."):
		otherwise = errDots
	}
	return find(before, localSigns, otherwise)
}

// localPart returns the length of the local part that the text begins with; 0: none.
func localPart(s string) int {
	if strings.HasPrefix(s, `"`) {
		return quotedString(s)
	}
	return dotAtom(s)
}

// quotedString is RFC 5322, section 3.2.4, on one line: of white space only the
// space is taken, as in RFC 5321, section 4.1.2.
func quotedString(s string) int {
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			return i + 1
		case c == '\\':
			if i++; i == len(s) || !printable(s[i]) {
				return 0
			}
		case !printable(c):
			return 0
		}
	}
	return 0
}

func printable(c byte) bool { return ' ' <= c && c <= '~' }

// dotAtom is RFC 5322, section 3.2.3: atoms, none of them empty, joined by dots.
func dotAtom(s string) int {
	start := 0 // of the atom
	for i := range len(s) {
		switch {
		case isAtext(s[i]):
		case s[i] == '.' && i > start:
			start = i + 1
		case i == start:
			return 0
		default:
			return i
		}
	}
	return 0 // nothing follows, so no address
}

func isAtext(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("!#$%&'*+-/=?^_`{|}~", c) >= 0
}

// registration is the IDNA profile (UTS 46, non-transitional, with RFC 5893 and
// the LDH rule of STD 3). It does not refuse "--" in the third place, which
// existing names have. Hyphens at a label's ends and lengths are checked below,
// where it can be said what is wrong.
func registration() *idna.Profile {
	return idna.New(idna.MapForLookup(), idna.Transitional(false), idna.CheckHyphens(false), idna.CheckJoiners(true),
		idna.BidiRule(), idna.StrictDomainName(true))
}

// ASCII normalises a domain name: IDNA labels to their xn-- form, letters
// to lower case. The last label is not of digits only (RFC 3696, section 2), so
// no address passes as a name. The error says what is wrong.
func ASCII(domain string) (string, error) {
	if utf8.RuneCountInString(domain) > maxAddress {
		return "", errDomainLen
	}
	if !utf8.ValidString(domain) {
		return "", errDomain
	}
	ascii, err := registration().ToASCII(domain)
	if err != nil {
		return "", find(domain, domainSigns, errDomain)
	}
	labels := strings.Split(ascii, ".")
	last := labels[len(labels)-1]
	switch {
	case len(labels) > 1 && last == "":
		return "", errLastDot
	case len(labels) == 1:
		return "", errLabels
	case strings.Trim(last, "0123456789") == "":
		return "", errNumeric
	}
	for _, label := range labels {
		switch {
		case label == "":
			return "", errEmptyLabel
		case label[0] == '-' || label[len(label)-1] == '-':
			return "", errHyphen
		case len(label) > maxLabel:
			return "", errLabelLen
		}
	}
	if len(ascii) > maxDomain {
		return "", errDomainLen
	}
	return ascii, nil
}
