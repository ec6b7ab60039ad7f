// Package address reads e-mail addresses and domain names.
package address

import (
	"errors"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

const (
	// maxAddress is the longest address, in characters (contract: at most 255 characters).
	maxAddress = 255
	// maxLocal is the longest local part, in octets (RFC 5321, section 4.5.3.1.1).
	maxLocal = 64
)

var (
	errLocal   = errors.New("must have a local part: an RFC 5322 dot-atom or quoted string of at most 64 characters")
	errAt      = errors.New("must have an @ and a domain after the local part")
	errLiteral = errors.New("must name a domain, not an address literal")
	errDomain  = errors.New("must have a domain name of at least two labels")
)

// Domain parses one RFC 5322 addr-spec, in today's grammar (no obsolete
// forms), without comments, folding white space and domain literals. It returns
// the domain as lower-case ASCII, at least two labels of it.
func Domain(address string) (string, error) {
	local := localPart(address)
	if local == 0 || local > maxLocal {
		return "", errLocal
	}
	domain, ok := strings.CutPrefix(address[local:], "@")
	if !ok {
		return "", errAt
	}
	if strings.HasPrefix(domain, "[") {
		return "", errLiteral
	}
	return ASCII(domain)
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
// existing names have; hyphens at a label's ends are refused below.
func registration() *idna.Profile {
	return idna.New(idna.MapForLookup(), idna.Transitional(false), idna.CheckHyphens(false), idna.CheckJoiners(true),
		idna.BidiRule(), idna.StrictDomainName(true), idna.VerifyDNSLength(true))
}

// ASCII normalises a domain name: IDNA labels to their xn-- form, letters
// to lower case.
func ASCII(domain string) (string, error) {
	if !utf8.ValidString(domain) || utf8.RuneCountInString(domain) > maxAddress {
		return "", errDomain
	}
	ascii, err := registration().ToASCII(domain)
	if err != nil || !strings.Contains(ascii, ".") {
		return "", errDomain
	}
	for label := range strings.SplitSeq(ascii, ".") {
		if label == "" || label[0] == '-' || label[len(label)-1] == '-' {
			return "", errDomain
		}
	}
	return ascii, nil
}
