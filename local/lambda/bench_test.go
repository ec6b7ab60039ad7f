package lambda_test

import "testing"

// BenchmarkCold is a host, a process's start, one event and the end. JAIL=off is what to compare it with.
func BenchmarkCold(b *testing.B) {
	for b.Loop() {
		host, _ := start(b, 1, nil)
		decode[state](b, invoke(b, host, `{"do":"state"}`))
		host.Close()
	}
}

// BenchmarkWarm is an event with a thaw before it and a freeze after it.
func BenchmarkWarm(b *testing.B) {
	host, _ := start(b, 1, nil)
	decode[state](b, invoke(b, host, `{"do":"state"}`))
	for b.Loop() {
		decode[state](b, invoke(b, host, `{"do":"state"}`))
	}
}
