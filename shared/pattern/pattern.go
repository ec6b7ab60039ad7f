// Package pattern compiles regular expressions when they are first used, so that no function compiles them at its
// start.
package pattern

import (
	"regexp"
	"sync"
)

// New returns a function that compiles the expression at the first call, and panics there on a malformed one.
func New(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}
