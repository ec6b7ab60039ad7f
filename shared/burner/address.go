package burner

import (
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

const (
	// maxAddress is the longest address, in characters (openapi.yaml#BurnerEmailRequest).
	maxAddress = 255
	// maxLocal is the longest local part, in octets (RFC 5321, section 4.5.3.1.1).
	maxLocal = 64
)

// The faults of an address or a domain. A text follows the field's name: "email must …".
var (
	errAt       = errors.New("must have an @ and a domain after the local part")
	errOneAt    = errors.New("must have one @ only, outside quotes")
	errNoLocal  = errors.New("must have a local part before the @")
	errLocal    = errors.New("must have a local part that is an RFC 5322 dot-atom or quoted string")
	errLocalLen = errors.New("must have a local part of at most 64 bytes in UTF-8")
	errUnseen   = errors.New("must have no invisible or control characters before the @")
	errDots     = errors.New("must have no dot at the start or end of the local part, and no two in a row")
	errQuoted   = errors.New("must have a quoted local part that ends in a quote right before the @, with quotes and " +
		"backslashes inside escaped")
	errSpace   = errors.New("must have no white space outside quotes")
	errComment = errors.New("must have no comments or brackets")
	errBare    = errors.New("must be the address alone, without a name or angle brackets")

	errLiteral    = errors.New("must name a domain, not an address literal")
	errUnderscore = errors.New("must have no underscore in the domain")
	errLastDot    = errors.New("must not end in a dot")
	errEmptyLabel = errors.New("must have no empty label in the domain: one dot separates two labels")
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

// sign maps characters to the fault of a text with one of them.
type sign struct {
	chars string
	fault error
}

const whiteSpace = " \t\r\n\v\f\u00a0"

var (
	localSigns  = []sign{{"<>", errBare}, {"()", errComment}, {whiteSpace, errSpace}}
	domainSigns = []sign{{"<>", errBare}, {"()", errComment}, {whiteSpace, errSpace}, {"_", errUnderscore}}
)

// find returns the fault of the first sign that occurs in the text, or otherwise.
func find(text string, signs []sign, otherwise error) error {
	for _, s := range signs {
		if strings.ContainsAny(text, s.chars) {
			return s.fault
		}
	}
	return otherwise
}

// Domain parses one RFC 5322 addr-spec, in UTF-8 as RFC 6532 extends it, without obsolete forms, comments, folding
// white space and domain literals. Domain returns the domain as lower-case ASCII with at least two labels. The error is
// the fault.
func Domain(address string) (string, error) {
	parse := dotAtom
	if strings.HasPrefix(address, `"`) {
		parse = quotedString
	}
	local := parse(address) // the length of the local part at the beginning, or 0
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

// localFault returns the fault of an address that does not begin with a local part and an @.
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
	case strings.ContainsFunc(before, func(r rune) bool { return r >= utf8.RuneSelf && !international(r) }):
		otherwise = errUnseen
	case strings.HasPrefix(before, "."), strings.HasSuffix(before, "."), strings.Contains(before, ".."):
		otherwise = errDots
	}
	return find(before, localSigns, otherwise)
}

// quotedString parses RFC 5322, section 3.2.4, with the space as the only white space, as in RFC 5321, section 4.1.2.
func quotedString(s string) int {
	escaped := false
	for i, r := range s {
		switch {
		case i == 0: // the quote at the beginning
		case r >= utf8.RuneSelf && (escaped || !international(r)), r < ' ', r == 0x7f:
			return 0
		case escaped:
			escaped = false
		case r == '"':
			return i + 1
		case r == '\\':
			escaped = true
		}
	}
	return 0
}

// dotAtom parses RFC 5322, section 3.2.3: non-empty atoms with dots between them.
func dotAtom(s string) int {
	start := 0 // of the atom
	for i, r := range s {
		switch {
		case isAtext(r):
		case r == '.' && i > start:
			start = i + 1
		case i == start:
			return 0
		default:
			return i
		}
	}
	return 0 // the @ is missing
}

func isAtext(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' ||
		strings.ContainsRune("!#$%&'*+-/=?^_`{|}~", r) || international(r)
}

// international reports whether RFC 6532, section 3.2, adds the character to atext and qtext, but for those that no
// reader sees: white space, controls and characters without a meaning. The joiners are part of Sinhala, Persian and
// other words.
func international(r rune) bool {
	const zeroWidthNonJoiner, zeroWidthJoiner = 0x200c, 0x200d
	return r >= utf8.RuneSelf && r != utf8.RuneError &&
		(unicode.IsPrint(r) || r == zeroWidthNonJoiner || r == zeroWidthJoiner)
}

// registration returns the IDNA profile (UTS 46, non-transitional, with RFC 5893 and the LDH rule of STD 3). The
// profile permits "--" in the third place, which existing names have. ASCII checks hyphens at the ends of labels and
// lengths.
func registration() *idna.Profile {
	return idna.New(idna.MapForLookup(), idna.Transitional(false), idna.CheckHyphens(false), idna.CheckJoiners(true),
		idna.BidiRule(), idna.StrictDomainName(true))
}

// ASCII normalises a domain name to lower case with xn-- labels. The last label must not consist of digits (RFC 3696,
// section 2), so that an IP address is not a name. The error is the fault.
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
