// Package gs1 reads GS1 element strings with their identifiers in parentheses, such as (01)09506000134352(10)AB-123,
// and checks them by GS1's table of Application Identifiers (GS1 General Specifications, 3 and 7.8).
package gs1

import (
	_ "embed" // identifiers.txt and patterns.txt
	"errors"
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"svcapi/shared/pattern"
)

// Message is a checked sequence of elements.
type Message struct {
	elements []element
	// Lacking are the identifiers that need a companion of GS1's table which the message does not have.
	Lacking []string
	// Invalid are the pairs of identifiers that GS1's table excludes, such as 01+37.
	Invalid []string
}

type element struct {
	identifier, value string
	predefined        bool // the length of the value is pre-defined
}

// identifier is one row of the table.
type identifier struct {
	predefined bool
	components []component
	companions [][][]string // each needs one of its groups completely
	excluded   []string
}

// component is a part of a value.
type component struct {
	set      byte
	min, max int
	optional bool
	rules    []string
}

//go:embed identifiers.txt
var table string

// identifiers returns the rows of the table by identifier. The first call reads the table.
var identifiers = sync.OnceValue(func() map[string]*identifier {
	rows := map[string]*identifier{}
	for line := range strings.Lines(table) {
		fields := strings.Fields(line)
		if fields[0] == "#" {
			continue
		}
		row := &identifier{predefined: fields[1] == "*"}
		for _, field := range fields[2:] {
			row.read(field)
		}
		first, last, several := strings.Cut(fields[0], "-")
		if !several {
			last = first
		}
		from, _ := strconv.Atoi(first) // a test reads every row
		to, _ := strconv.Atoi(last)
		for number := from; number <= to; number++ {
			rows[fmt.Sprintf("%0*d", len(first), number)] = row
		}
	}
	return rows
})

// read adds one field of a row: companions, exclusions or a component such as [N..12],rule.
func (row *identifier) read(field string) {
	if groups, ok := strings.CutPrefix(field, "req="); ok {
		var alternatives [][]string
		for group := range strings.SplitSeq(groups, ",") {
			alternatives = append(alternatives, strings.Split(group, "+"))
		}
		row.companions = append(row.companions, alternatives)
		return
	}
	if list, ok := strings.CutPrefix(field, "ex="); ok {
		row.excluded = append(row.excluded, strings.Split(list, ",")...)
		return
	}
	parts := strings.Split(field, ",")
	form := strings.Trim(parts[0], "[]")
	c := component{set: form[0], optional: parts[0] != form, rules: parts[1:]}
	text, variable := strings.CutPrefix(form[1:], "..")
	c.max, _ = strconv.Atoi(text)
	if c.min = c.max; variable {
		c.min = 1
	}
	row.components = append(row.components, c)
}

// firstElement matches an identifier in parentheses, and a value up to a parenthesis without a backslash.
var firstElement = pattern.New(`(?s)^\((\d{2,4})\)((?:\\.|[^(])*)`)

// Parse reads a message. A parenthesis within a value is written as \( or \). The error is a client message, which does
// not repeat values.
func Parse(text string) (*Message, error) {
	m := &Message{}
	for rest := text; rest != ""; {
		found := firstElement().FindStringSubmatch(rest)
		if found == nil {
			return nil, fmt.Errorf("takes identifiers in parentheses, such as (10)LOT-7; none begins at "+
				"position %d", len(text)-len(rest)+1)
		}
		rest = rest[len(found[0]):]
		value := strings.NewReplacer(`\(`, "(", `\)`, ")").Replace(found[2])
		row := identifiers()[found[1]]
		if row == nil {
			return nil, fmt.Errorf("the identifier (%s) is not in GS1's table", found[1])
		}
		if err := row.validate(value); err != nil {
			return nil, fmt.Errorf("identifier (%s): %w", found[1], err)
		}
		for _, e := range m.elements {
			if e.identifier == found[1] && e.value != value {
				return nil, fmt.Errorf("identifier (%s): occurs twice with different values", found[1])
			}
		}
		m.elements = append(m.elements, element{found[1], value, row.predefined})
	}
	m.pair()
	return m, nil
}

// validate returns the reason why a value is not one of the identifier.
func (row *identifier) validate(value string) error {
	least, most := 0, 0
	for _, c := range row.components {
		if most += c.max; !c.optional {
			least += c.min
		}
	}
	if n := len(value); n < least || n > most {
		if least == most {
			return fmt.Errorf("takes %d characters; found %d", most, n)
		}
		return fmt.Errorf("takes %d to %d characters; found %d", least, most, n)
	}
	for _, c := range row.components {
		if value == "" && c.optional {
			break
		}
		if len(value) < c.min {
			return fmt.Errorf("lacks %d characters at its end", c.min-len(value))
		}
		part := value[:min(len(value), c.max)]
		value = value[len(part):]
		if err := c.validate(part); err != nil {
			return err
		}
	}
	return nil
}

func (c component) validate(part string) error {
	allowed := sets[c.set]
	for _, r := range part {
		if !strings.ContainsRune(allowed.characters, r) {
			return fmt.Errorf("takes %s; found %q", allowed.name, r)
		}
	}
	for _, name := range c.rules {
		if err := rules()[name](part); err != nil {
			return err
		}
	}
	return nil
}

// pair sets Lacking and Invalid.
func (m *Message) pair() {
	has := func(name, own string) bool {
		like := regexp.MustCompile("^" + strings.ReplaceAll(name, "n", "[0-9]") + "$")
		return slices.ContainsFunc(m.elements,
			func(e element) bool { return e.identifier != own && like.MatchString(e.identifier) })
	}
	for _, e := range m.elements {
		row := identifiers()[e.identifier]
		for _, alternatives := range row.companions {
			if !slices.ContainsFunc(alternatives, func(group []string) bool {
				return !slices.ContainsFunc(group, func(name string) bool { return !has(name, e.identifier) })
			}) {
				m.Lacking = append(m.Lacking, e.identifier)
			}
		}
		for _, name := range row.excluded {
			if has(name, e.identifier) {
				m.Invalid = append(m.Invalid, e.identifier+"+"+name)
			}
		}
	}
}

// Text returns the human-readable text, with the identifiers in parentheses (GS1 General Specifications, 4.14).
func (m *Message) Text() string {
	var b strings.Builder
	for _, e := range m.elements {
		fmt.Fprintf(&b, "(%s)%s", e.identifier, e.value)
	}
	return b.String()
}

// Data returns the data of a symbol: the separator first, and after each value without a pre-defined length that is not
// the last.
func (m *Message) Data(separator string) string {
	var data strings.Builder
	data.WriteString(separator)
	for i, e := range m.elements {
		data.WriteString(e.identifier + e.value)
		if !e.predefined && i < len(m.elements)-1 {
			data.WriteString(separator)
		}
	}
	return data.String()
}

const (
	digits  = "0123456789"
	letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	// set82 is character set 82 in the order of its values (GS1 General Specifications, 7.11 and 7.9.5).
	set82 = `!"%&'()*+,-./` + digits + ":;<=>?" + letters + "_abcdefghijklmnopqrstuvwxyz"
)

// sets are the characters of a component by its letter in the table.
var sets = map[byte]struct{ name, characters string }{
	'N': {"digits", digits},
	'X': {"characters of GS1's set 82", set82},
	'Y': {"characters of GS1's set 39", "#-/" + digits + letters},
	'Z': {"characters of base64url", "-_=" + digits + letters + strings.ToLower(letters)},
}

//go:embed patterns.txt
var patterns string

// rules returns the checks of a component whose characters are valid. The first call reads patterns.txt.
var rules = sync.OnceValue(func() map[string]func(string) error {
	all := map[string]func(string) error{
		"csum": ValidateCheckDigit, "csumalpha": checkPair, "iban": iban, "pieceoftotal": pieceOfTotal,
		"yymmdd": date("060102", false), "yymmd0": date("060102", true), "yyyymmdd": date("20060102", false),
	}
	for line := range strings.Lines(patterns) {
		name, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		expression, what, _ := strings.Cut(rest, " ")
		all[name] = func(part string) error { // also for #, which no row names
			if !regexp.MustCompile(expression).MatchString(part) {
				return fmt.Errorf("needs %s", what)
			}
			return nil
		}
	}
	return all
})

// date returns the rule of a date. With anyDay the day 00 is the whole month.
func date(layout string, anyDay bool) func(string) error {
	return func(part string) error {
		if month, ok := strings.CutSuffix(part, "00"); ok && anyDay {
			part = month + "01"
		}
		if _, err := time.Parse(layout, part); err != nil {
			return errors.New("has no date of the calendar")
		}
		return nil
	}
}

// CheckDigit returns the check digit of digits: weights 3, 1, 3, ... from the right, then the rest to a multiple of ten
// (GS1 General Specifications, 7.9.1).
func CheckDigit(digits string) byte {
	sum, weight := 0, 3
	for i := len(digits) - 1; i >= 0; i-- {
		sum += weight * int(digits[i]-'0')
		weight = 4 - weight
	}
	return '0' + byte((10-sum%10)%10)
}

// ValidateCheckDigit returns the error of digits whose last one is not their check digit. The text does not repeat the
// digits, because the log has the text.
func ValidateCheckDigit(part string) error {
	last := len(part) - 1
	if want := CheckDigit(part[:last]); part[last] != want {
		return fmt.Errorf("the check digit must be %c; found %c", want, part[last])
	}
	return nil
}

// checkPair checks the two last characters of a Global Model Number: prime weights from the right, modulo 1021, as two
// characters of a set of 32 (GS1 General Specifications, 7.9.5).
func checkPair(part string) error {
	const set32 = "23456789ABCDEFGHJKLMNPQRSTUVWXYZ"
	body := len(part) - 2
	if body < 0 {
		return errors.New("lacks its two check characters")
	}
	sum, prime := 0, int64(1)
	for i := body - 1; i >= 0; i-- {
		for prime++; !big.NewInt(prime).ProbablyPrime(0); prime++ {
		}
		sum += strings.IndexByte(set82, part[i]) * int(prime)
	}
	sum %= 1021
	if want := string([]byte{set32[sum>>5], set32[sum&31]}); part[body:] != want {
		return fmt.Errorf("the check characters must be %s; found %s", want, part[body:])
	}
	return nil
}

// iban checks the check digits of an International Bank Account Number (ISO 13616-1).
func iban(part string) error {
	if !regexp.MustCompile(`^[A-Z]{2}\d\d[0-9A-Z]+$`).MatchString(part) {
		return errors.New("is no IBAN")
	}
	var number strings.Builder
	for _, r := range part[4:] + part[:4] {
		fmt.Fprint(&number, strings.IndexRune(digits+letters, r))
	}
	n, _ := new(big.Int).SetString(number.String(), 10)
	if n.Mod(n, big.NewInt(97)).Int64() != 1 {
		return errors.New("the check digits of the IBAN are wrong")
	}
	return nil
}

func pieceOfTotal(part string) error {
	piece, total := part[:len(part)/2], part[len(part)/2:]
	if strings.Trim(piece, "0") == "" || piece > total {
		return errors.New("needs the number of a piece, from 1 to the total")
	}
	return nil
}
