// Package must ends a test on an error that the test does not expect.
package must

import "testing"

// Succeed ends the test with the error, unless the error is nil.
func Succeed(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Result is what a function has returned: a value, or an error.
type Result[T any] struct {
	value T
	err   error
}

// Get takes what a function has returned: must.Get(os.ReadFile(path)).Or(t).
func Get[T any](value T, err error) Result[T] { return Result[T]{value, err} }

// Or returns the value, or ends the test with the error.
func (r Result[T]) Or(t testing.TB) T {
	t.Helper()
	Succeed(t, r.err)
	return r.value
}
