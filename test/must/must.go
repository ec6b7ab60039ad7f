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
