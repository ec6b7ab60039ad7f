package lambda_test

import (
	"context"
	"testing"
	"time"

	"svcapi/local/lambda"
	"svcapi/local/template"
)

func benchmarkHost(b *testing.B) *lambda.Host {
	b.Helper()
	host, err := lambda.NewHost(lambda.Options{LogDir: b.TempDir(), Jail: confined, Concurrency: 1})
	if err != nil {
		b.Fatal(err)
	}
	if err := host.Add(template.Function{LogicalID: "Probe", Folder: "probe", Handler: "bootstrap", Timeout: 5 * time.Second}, bootstrap); err != nil {
		b.Fatal(err)
	}
	return host
}

func ask(b *testing.B, host *lambda.Host) {
	b.Helper()
	if result, err := host.Invoke(context.Background(), "Probe", []byte(`{"do":"state"}`)); err != nil || result.FunctionError != "" {
		b.Fatal(result, err)
	}
}

// BenchmarkCold is a host, a process's start, one event and the end. JAIL=off is what to compare it with.
func BenchmarkCold(b *testing.B) {
	for b.Loop() {
		host := benchmarkHost(b)
		ask(b, host)
		host.Close()
	}
}

// BenchmarkWarm is an event with a thaw before it and a freeze after it.
func BenchmarkWarm(b *testing.B) {
	host := benchmarkHost(b)
	defer host.Close()
	ask(b, host)
	for b.Loop() {
		ask(b, host)
	}
}
