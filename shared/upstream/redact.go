package upstream

import (
	"bytes"
	"encoding/base64"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

const (
	// shortest is the length in bytes from which a secret is replaced within words, too: many numbers contain 27.
	shortest = 4
	depth    = 2 // nested escapes, such as JSON within a query
	mask     = "***"
)

// Redact replaces the secrets in a text by ***: plain, escaped for a query, a path or JSON (also nested), and in
// Base64, alone or within a longer text. Overlapping secrets leave no rest.
func Redact(text string, secrets []string) string {
	var needles []needle
	for _, s := range secrets {
		needles = append(needles, needlesOf(s)...)
	}
	if len(needles) == 0 {
		return text
	}
	secret := make([]bool, len(text)) // by byte of the text
	original := view{[]byte(text), make([]int32, len(text)+1)}
	for i := range original.at {
		original.at[i] = int32(i)
	}
	mark(secret, original, needles, depth)
	var kept strings.Builder
	for i := range len(text) {
		switch {
		case !secret[i]:
			kept.WriteByte(text[i])
		case i == 0 || !secret[i-1]:
			kept.WriteString(mask)
		}
	}
	return kept.String()
}

// needle is one spelling of a secret.
type needle struct {
	text []byte
	word bool // only where neither neighbour is a letter or a digit
	// lead and tail are the numbers of characters before and after the text that contain bits of the secret.
	lead, tail int
}

// needlesOf returns the usual spellings of a secret and its Base64.
func needlesOf(secret string) []needle {
	if secret == "" {
		return nil
	}
	texts := []string{secret, url.QueryEscape(secret), url.PathEscape(secret)}
	if quoted, err := jsontext.AppendQuote(nil, secret); err == nil { // JSON cannot contain a secret that is not UTF-8
		texts = append(texts, string(quoted[1:len(quoted)-1]))
	}
	word := len(secret) < shortest
	var needles []needle
	for _, text := range texts {
		needles = append(needles, needle{text: []byte(text), word: word})
		if slashed := strings.ReplaceAll(text, "/", `\/`); slashed != text {
			needles = append(needles, needle{text: []byte(slashed), word: word})
		}
	}
	for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		if word {
			needles = append(needles, needle{text: []byte(encoding.EncodeToString([]byte(secret))), word: true})
			continue
		}
		for before := range 3 { // within a longer text, for each start position
			coded := encoding.EncodeToString([]byte(strings.Repeat("x", before) + secret))
			bits := (before + len(secret)) * 8
			needles = append(needles, needle{
				text: []byte(coded[(before*8+5)/6 : bits/6]), lead: min(before, 1), tail: min(bits%6, 1),
			})
		}
	}
	slices.SortFunc(needles, func(a, b needle) int { return bytes.Compare(a.text, b.text) })
	return slices.CompactFunc(needles, func(a, b needle) bool { return bytes.Equal(a.text, b.text) })
}

// view is a text with some escapes decoded.
type view struct {
	text []byte
	at   []int32 // the position of each byte in the original, and the original's length
}

// end returns the end of the original of the bytes before i. The bytes of one escape have the same start.
func (v view) end(i int) int32 {
	for i < len(v.text) && v.at[i] == v.at[i-1] {
		i++
	}
	return v.at[i]
}

// mark marks the needles in a view, and in its views with up to depth more escapes decoded.
func mark(secret []bool, v view, needles []needle, depth int) {
	for _, n := range needles {
		for from := 0; ; from++ {
			found := bytes.Index(v.text[from:], n.text)
			if found < 0 {
				break
			}
			from += found
			to := from + len(n.text)
			if n.word && (from > 0 && isWord(v.text[from-1]) || to < len(v.text) && isWord(v.text[to])) {
				continue
			}
			begin, end := v.at[max(from-n.lead, 0)], v.end(min(to+n.tail, len(v.text)))
			for i := begin; i < end; i++ {
				secret[i] = true
			}
		}
	}
	if depth == 0 {
		return
	}
	for _, escape := range []struct {
		undo   unescape
		begins string
	}{{ofPath, "%"}, {ofQuery, "+"}, {ofJSON, `\`}} { // a query without a + is a path
		if !bytes.Contains(v.text, []byte(escape.begins)) {
			continue
		}
		if inner, changed := v.undone(escape.undo); changed {
			mark(secret, inner, needles, depth-1)
		}
	}
}

func isWord(b byte) bool {
	return '0' <= b && b <= '9' || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' || b >= utf8.RuneSelf
}

// unescape decodes the escape at the beginning of a text, and returns length 0 where there is no escape.
type unescape func(text []byte) (plain []byte, length int)

// undone returns the view with one kind of escape decoded, and whether there was such an escape.
func (v view) undone(undo unescape) (inner view, changed bool) {
	inner = view{make([]byte, 0, len(v.text)), make([]int32, 0, len(v.at))}
	for i := 0; i < len(v.text); {
		plain, length := undo(v.text[i:])
		if length == 0 {
			plain, length = v.text[i:i+1], 1
		} else {
			changed = true
		}
		inner.text = append(inner.text, plain...)
		for range plain {
			inner.at = append(inner.at, v.at[i])
		}
		i += length
	}
	inner.at = append(inner.at, v.at[len(v.text)])
	return inner, changed
}

func ofPath(text []byte) ([]byte, int) {
	if len(text) >= 3 && text[0] == '%' {
		if n, err := strconv.ParseUint(string(text[1:3]), 16, 8); err == nil {
			return []byte{byte(n)}, 3
		}
	}
	return nil, 0
}

func ofQuery(text []byte) ([]byte, int) {
	if text[0] == '+' {
		return []byte{' '}, 1
	}
	return ofPath(text)
}

// ofJSON decodes the escapes of JSON and of Go's quoted strings. UnquoteChar has no slash and no surrogate pairs.
func ofJSON(text []byte) ([]byte, int) {
	const pair = len(`\ud83d\ude00`)
	if len(text) < 2 || text[0] != '\\' {
		return nil, 0
	}
	if text[1] == '/' {
		return text[1:2], 2
	}
	escape := string(text[:min(pair, len(text))])
	if plain, err := jsontext.AppendUnquote(nil, `"`+escape+`"`); err == nil && len(escape) == pair &&
		utf8.RuneCount(plain) == 1 {
		return plain, pair
	}
	char, multibyte, rest, err := strconv.UnquoteChar(escape, text[1])
	switch {
	case err != nil:
		return nil, 0
	case multibyte:
		return utf8.AppendRune(nil, char), len(escape) - len(rest)
	}
	return []byte{byte(char)}, len(escape) - len(rest) //nolint:gosec // a byte or ASCII, because it is not multibyte
}
