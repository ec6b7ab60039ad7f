package rates

import (
	_ "embed"
	"strings"
	"sync"
)

// iso4217 lists the currency codes of ISO 4217 with the names of the standard, without the codes for testing (XTS) and
// for no currency (XXX).
//
//go:embed iso4217.txt
var iso4217 string

// names returns the names of the currencies by code.
var names = sync.OnceValue(func() map[string]string {
	byCode := map[string]string{}
	for line := range strings.Lines(iso4217) {
		code, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		byCode[code] = name
	}
	return byCode
})

// Name returns the name of a currency in ISO 4217, and false for a code that the standard does not name.
func Name(code string) (string, bool) {
	name, ok := names()[code]
	return name, ok
}
