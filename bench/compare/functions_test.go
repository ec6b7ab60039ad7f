// Package compare has the benchmarks that compare programs with one another in the same run, and print tables of their
// own.
package compare

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"text/tabwriter"
	"time"

	"svcapi/bench/baseline"
	"svcapi/local/build"
	"svcapi/local/demo"
	"svcapi/local/lambda"
	"svcapi/local/stack"
	"svcapi/local/template"
	"svcapi/shared/project"
	"svcapi/shared/wallet"
)

const (
	coldStarts = 21              // of each function, in turn
	clients    = 8               // at once
	warmUp     = time.Second     // before each load
	load       = 4 * time.Second // of each kind

	mostRatio = 1.95
)

// BenchmarkFunctions compares the functions with a hello function: the time from the start of a process to its first
// request for an event, the size of the binary, and for SMS the requests a second through the whole local stack. The
// benchmark also compares the start of the PDF function with and without the processor time that Lambda grants.
func BenchmarkFunctions(b *testing.B) { benchmark(b, compareFunctions) }

// BenchmarkGotenberg compares PDFs with Gotenberg's.
func BenchmarkGotenberg(b *testing.B) { benchmark(b, compareGotenberg) }

// benchmark runs one comparison, which an interrupt ends in order.
func benchmark(b *testing.B, compare func(ctx context.Context, dir string, out io.Writer) error) {
	ctx, stop := signal.NotifyContext(b.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := compare(ctx, b.TempDir(), os.Stdout); err != nil {
		b.Fatal(err)
	}
}

// bench is one run.
type bench struct {
	stack     *stack.Stack
	dir       string // for logs and the hello function
	hello     *baseline.Hello
	functions []template.Function // that start without a browser
	paths     map[string]string   // binaries by logical ID
}

func compareFunctions(ctx context.Context, dir string, out io.Writer) (err error) {
	b := &bench{dir: dir}
	if b.stack, err = stack.Start(ctx,
		stack.Options{LogDir: filepath.Join(dir, "stack"), Concurrency: clients}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.stack.Close()) }()
	if err := b.build(ctx); err != nil {
		return err
	}
	fmt.Fprintf(out, "%s/%s, %d CPUs\n\n", runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	if err := b.processes(ctx, out); err != nil {
		return err
	}
	if err := b.pdf(ctx, out); err != nil {
		return err
	}
	return b.requests(ctx, out)
}

func (b *bench) build(ctx context.Context) error {
	for _, folder := range []string{"sms", "barcode", "location", "currency", "docs", "security", "pdf"} {
		f, ok := b.stack.Template.Function(folder)
		if !ok {
			return fmt.Errorf("the template has no function %s", folder)
		}
		b.functions = append(b.functions, f)
	}
	var err error
	if b.paths, err = build.Functions(ctx, b.functions); err != nil {
		return err
	}
	if b.hello, err = baseline.Build(ctx, b.stack.Template, b.dir); err != nil {
		return err
	}
	b.paths[b.hello.Function.LogicalID] = b.hello.Binary
	return nil
}

// processes prints binary sizes, and the time from a process's start to its first request for an event.
func (b *bench) processes(ctx context.Context, out io.Writer) error {
	starts, all := map[string][]time.Duration{}, append([]template.Function{b.hello.Function}, b.functions...)
	for range coldStarts {
		for _, f := range all {
			took, err := b.start(ctx, f)
			if err != nil {
				return err
			}
			starts[f.LogicalID] = append(starts[f.LogicalID], took)
		}
	}
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\tbinary\tto first /next, median\tbest\tratio of medians\t")
	base := quantile(starts[b.hello.Function.LogicalID], 0.5)
	for _, f := range all {
		info, err := os.Stat(b.paths[f.LogicalID])
		if err != nil {
			return err
		}
		median := quantile(starts[f.LogicalID], 0.5)
		fmt.Fprintf(t, "%s\t%.1f MB\t%s\t%s\t%.2f%s\t\n", f.Folder, float64(info.Size())/(1<<20), ms(median),
			ms(quantile(starts[f.LogicalID], 0)),
			ratio(median, base), verdict(f.LogicalID == b.hello.Function.LogicalID || ratio(median, base) <= mostRatio))
	}
	fmt.Fprintf(t, "goal, at most\t\t\t\t%.2f\t\n\n", mostRatio)
	return t.Flush()
}

func verdict(good bool) string {
	if good {
		return ""
	}
	return " (over the goal)"
}

// start starts a process of a function and returns the time until its first request for an event.
func (b *bench) start(ctx context.Context, f template.Function) (time.Duration, error) {
	host, err := lambda.HostOf(lambda.Options{
		LogDir: b.dir, Jail: b.stack.Jail, Concurrency: 1, Environment: map[string]string{"SVC_LOCAL": "1"},
	}, f, b.paths[f.LogicalID])
	if err != nil {
		return 0, err
	}
	defer host.Close()
	result, err := host.Invoke(ctx, f.LogicalID, []byte(`{"httpMethod":"GET","path":"/"}`))
	if err == nil && result.FunctionError != "" {
		err = fmt.Errorf("%s: %s", f.LogicalID, result.Payload)
	}
	return result.Init, err
}

// requests prints the requests a second through gateway, function, DynamoDB Local and sandbox.
func (b *bench) requests(ctx context.Context, out io.Writer) (err error) {
	server, err := b.hello.Serve(lambda.Options{LogDir: b.dir, Jail: b.stack.Jail, Concurrency: clients})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Close()) }()

	if err := b.grant(ctx); err != nil {
		return err
	}
	const send = `{"send_method":"single","to":"0771234567","message":"bench"}`
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "%d clients\tper second\tratio\tp50\tratio\tp99\tratio\t\n", clients)
	var base figures
	for _, kind := range []struct{ name, url, project, body string }{
		{"hello", server.URL, "managed", "{}"},
		{"balance, Managed", b.stack.BaseURL + "/sms/balance", "managed", "{}"},
		{"send, BYOK", b.stack.BaseURL + "/sms/send", "byok", send},
		{"send, Managed", b.stack.BaseURL + "/sms/send", "managed", send},
	} {
		got, err := measure(ctx, kind.url, kind.body, demo.CredentialOf(kind.project, project.Development))
		if err != nil {
			return fmt.Errorf("%s: %w", kind.name, err)
		}
		if base.perSecond == 0 {
			base = got
		}
		fmt.Fprintf(t, "%s\t%.0f\t%.2f\t%s\t%.2f\t%s\t%.2f\t\n", kind.name, got.perSecond, got.perSecond/base.perSecond,
			ms(got.p50), ratio(got.p50, base.p50), ms(got.p99), ratio(got.p99, base.p99))
	}
	return t.Flush()
}

// grant gives the demo project more credits than a run can spend.
func (b *bench) grant(ctx context.Context) error {
	return b.stack.Credit.Grant(ctx, wallet.Entry{
		Project: demo.ID("managed"), Key: wallet.NewKey(time.Now(),
			"bench"), Credits: 1_000_000_000_000, Reason: "bench", Actor: "local",
	})
}

// figures of one load.
type figures struct {
	perSecond float64
	p50, p99  time.Duration
}

// measure sends requests from all clients, first to warm up, then to be counted.
func measure(ctx context.Context, url, body string, as demo.Credential) (figures, error) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients}}
	defer client.CloseIdleConnections()
	once := func() error {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
		if err != nil {
			return err
		}
		r.Header.Set("X-API-KEY", as.ClientID)
		r.Header.Set("X-API-SECRET", as.ClientSecret)
		response, err := client.Do(r)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err == nil && response.StatusCode != http.StatusOK {
			err = fmt.Errorf("%d %s", response.StatusCode, text)
		}
		return err
	}
	var mu sync.Mutex
	var times []time.Duration
	var failure error
	counted := time.Now().Add(warmUp)
	end := counted.Add(load)
	var running sync.WaitGroup
	for range clients {
		running.Go(func() {
			for began := time.Now(); began.Before(end); began = time.Now() {
				err := once()
				mu.Lock()
				if began.After(counted) {
					times = append(times, time.Since(began))
				}
				failure = cmp.Or(failure, err)
				mu.Unlock()
				if err != nil {
					return
				}
			}
		})
	}
	running.Wait()
	if failure != nil || len(times) == 0 {
		return figures{}, cmp.Or(failure, errors.New("no request ended in time"))
	}
	return figures{float64(len(times)) / load.Seconds(), quantile(times, 0.5), quantile(times, 0.99)}, nil
}

// quantile sorts the times.
func quantile(times []time.Duration, q float64) time.Duration {
	slices.Sort(times)
	return times[int(q*float64(len(times)-1))]
}

func ratio(a, b time.Duration) float64 { return float64(a) / float64(b) }

func ms(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000) }
