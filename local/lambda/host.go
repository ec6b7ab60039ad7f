// Package lambda runs compiled bootstraps as AWS Lambda does: processes that ask the Lambda Runtime API for events, one
// at a time each, started on demand, frozen between events and ended at the function's timeout.
package lambda

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/semaphore"

	"svcapi/local/chromium"
	"svcapi/local/jail"
	"svcapi/local/template"
)

const (
	// MaxResponse is the most bytes that Lambda accepts for a buffered response.
	MaxResponse = 6*1024*1024 + 100
	// MaxStream is the most bytes that Lambda accepts for a streamed response.
	MaxStream = 200 * 1024 * 1024

	initTimeout        = 10 * time.Second // Lambda's for init, on demand
	defaultConcurrency = 10
	defaultAccount     = 1000      // AWS's default quota of concurrent executions
	scratch            = 512 << 20 // Lambda's default for /tmp
)

var (
	// ErrNoneFree means that no process of the function became free in time.
	ErrNoneFree = errors.New("every process of the function is busy")
	// ErrThrottled is Lambda's TooManyRequestsException: the account's or the function's concurrency is used up.
	ErrThrottled = errors.New("no concurrency is left for the function")
	// ErrClosed means that the host has ended.
	ErrClosed = errors.New("the Lambda host has ended")
)

// StartingError means that a function cannot run yet, because something that the function needs is not there.
type StartingError struct {
	Needs string        // a sentence for the caller that names the missing part
	After time.Duration // until another try makes sense
}

// Error returns the sentence.
func (e *StartingError) Error() string { return e.Needs }

// extra are the only variables that a function may get besides the template's and Lambda's own.
var extra = regexp.MustCompile(`^(AWS_ENDPOINT_URL(_[A-Z_]+)?|SVC_LOCAL|CHROMIUM|SVC_TEST_PUBLIC_NETS|SVC_TEST_CA)$`)

// Options of NewHost.
type Options struct {
	LogDir      string     // one file per function, <folder>.log; required
	Jail        *jail.Jail // starts the functions; required
	Concurrency int        // most processes per function, or per tenant of a function; default 10
	// most events at once over all functions; one more is refused; default 1,000, AWS's quota
	Account int
	// AWS_ENDPOINT_URL*, SVC_LOCAL, CHROMIUM, SVC_TEST_PUBLIC_NETS, SVC_TEST_CA; beats the template's
	Environment map[string]string
}

// Host holds the processes of a set of functions.
type Host struct {
	options Options

	mu    sync.Mutex
	pools map[poolKey]*pool
	ready map[string]func(context.Context) error // by logical ID, of functions that wait for something
	room  *semaphore.Weighted                    // the events that may still begin, of the functions without a reservation

	ending context.Context // ends when the host is closed
	end    context.CancelFunc
	queued sync.WaitGroup // asynchronous events
}

// poolKey names the processes of a function, by its logical ID, or those that serve one tenant of the function.
type poolKey struct{ function, tenant string }

// What Lambda refuses as InvalidParameterValueException (AWS Lambda Developer Guide, Troubleshooting tenant isolation).
var (
	errNoTenant = errors.New("the function has tenant isolation, and the request has no valid tenant ID")
	errTenant   = errors.New("the request has a tenant ID, and the function has no tenant isolation")
)

// tenantID is the pattern of a tenant ID (TenantId, Lambda API Reference, ChainedInvokeOptions).
var tenantID = regexp.MustCompile(`^[a-zA-Z0-9._:/=+\-@ ]{1,256}$`)

// Result is the result of an event.
type Result struct {
	RequestID string // Lambda's own, not the gateway's
	Payload   []byte // the response; where FunctionError is set, Lambda's error object
	Streamed  bool   // the function streamed its response: Payload holds prelude, separator and body
	// of a response that InvokeStream returns before its end, in place of Payload; ends with a *FunctionError or io.EOF
	Stream io.Reader
	Init   time.Duration // from the process's start until it asked for its first event; 0 for a later event

	// FunctionError is empty for a response; "Unhandled" where the function failed, died or took too long.
	FunctionError string

	err error // of the host, which has no result then
}

// NewHost returns a host without functions.
func NewHost(options Options) (*Host, error) {
	for name := range options.Environment {
		if !extra.MatchString(name) {
			return nil, fmt.Errorf("%s is not among the variables that a local function may get besides the template's", name)
		}
	}
	if options.Jail == nil {
		return nil, errors.New("a Lambda host needs a jail")
	}
	options.Concurrency = cmp.Or(options.Concurrency, defaultConcurrency)
	options.Account = cmp.Or(options.Account, defaultAccount)
	if err := os.MkdirAll(options.LogDir, 0o755); err != nil {
		return nil, err
	}
	h := &Host{options: options, pools: map[poolKey]*pool{}, ready: map[string]func(context.Context) error{},
		room: semaphore.NewWeighted(int64(options.Account))}
	h.ending, h.end = context.WithCancel(context.Background())
	return h, nil
}

// HostOf returns a host with one function.
func HostOf(options Options, function template.Function, bootstrap string) (*Host, error) {
	h, err := NewHost(options)
	if err != nil {
		return nil, err
	}
	if err := h.Add(function, bootstrap); err != nil {
		h.Close()
		return nil, err
	}
	return h, nil
}

// Add gives the host a function and its binary. No process is started before its first event.
func (h *Host) Add(function template.Function, bootstrap string) error {
	binary, err := filepath.Abs(bootstrap)
	if err != nil {
		return err
	}
	if _, err := os.Stat(binary); err != nil {
		return fmt.Errorf("function %s is not built: %w", function.LogicalID, err)
	}
	output, err := newOutput(filepath.Join(h.options.LogDir, function.Folder+".log"), function)
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	places, reserved := h.room, int64(function.Reserved)
	key := poolKey{function: function.LogicalID}
	if h.pools[key] != nil || h.ending.Err() != nil {
		return errors.Join(fmt.Errorf("function %s cannot be added now", function.LogicalID), output.close())
	}
	if !places.TryAcquire(reserved) {
		return errors.Join(fmt.Errorf("function %s reserves %d events at once, and the account has no room for them",
			function.LogicalID, reserved), output.close())
	}
	if reserved > 0 {
		places = semaphore.NewWeighted(reserved)
	}
	var list []string
	variables := environment(function, h.options.Jail.TaskRoot(binary), h.options.Environment)
	for name, v := range variables {
		list = append(list, name+"="+v)
	}
	command := jail.Command{Binary: binary, Env: list, Output: output.raw, Readable: readable(variables), Scratch: scratch}
	h.pools[key] = &pool{
		settings:  settings{function, h.options.Jail, command, h.options.Concurrency, places, output},
		instances: map[*instance]bool{},
	}
	return nil
}

// readable are the files and folders that a function's variables name, which the jail shows at the same paths.
func readable(variables map[string]string) []string {
	var paths []string
	for name, path := range variables {
		if !filepath.IsAbs(path) || slices.Contains([]string{"/", "/dev", "/proc", "/sys", "/tmp", "/var"},
			filepath.Clean(path)) {
			continue
		}
		target, err := filepath.EvalSymlinks(path)
		if err != nil {
			continue // not a path, or not one of this machine
		}
		if name == chromium.Variable { // its libraries and fonts are in the same folder
			path, target = filepath.Dir(path), filepath.Dir(target)
		}
		paths = append(paths, path, target)
	}
	return paths
}

// Await makes each event of a function wait until ready returns nil. An error of ready is the result of the event.
func (h *Host) Await(function string, ready func(context.Context) error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ready[function] = ready
}

// Invoke runs one event through a function without tenants, by its logical ID, and waits for the result. If the
// concurrency quota permits the event but every process is busy, the event waits until a process is free or ctx ends.
// An event that runs continues to its end when ctx ends, as in Lambda.
func (h *Host) Invoke(ctx context.Context, function string, payload []byte) (Result, error) {
	return h.invoke(ctx, poolKey{function: function}, payload, false)
}

// InvokeStream is Invoke for callers that take a streamed response while the function sends the response.
func (h *Host) InvokeStream(ctx context.Context, function string, payload []byte) (Result, error) {
	return h.invoke(ctx, poolKey{function: function}, payload, true)
}

func (h *Host) invoke(ctx context.Context, key poolKey, payload []byte, streams bool) (Result, error) {
	h.mu.Lock()
	ready := h.ready[key.function]
	h.mu.Unlock()
	if ready != nil {
		if err := ready(ctx); err != nil {
			return Result{}, err
		}
	}
	h.mu.Lock()
	pool, err := h.find(key)
	h.mu.Unlock()
	if err != nil {
		return Result{}, err
	}
	if !pool.room.TryAcquire(1) {
		return Result{}, ErrThrottled
	}
	e := &event{id: uuid.NewString(), payload: payload, streams: streams, done: make(chan Result, 1)}
	e.leave = sync.OnceFunc(func() { pool.room.Release(1) })
	pool.submit(e)
	select {
	case result := <-e.done:
		result.RequestID = e.id
		return result, result.err
	case <-ctx.Done():
		if pool.withdraw(e) {
			e.leave()
			return Result{RequestID: e.id}, ErrNoneFree
		}
		return Result{RequestID: e.id}, ctx.Err()
	}
}

// find returns the processes that may run an event. Those of a tenant run no event of another tenant. The lock is held.
func (h *Host) find(key poolKey) (*pool, error) {
	base := h.pools[poolKey{function: key.function}]
	switch {
	case h.ending.Err() != nil:
		return nil, ErrClosed
	case base == nil:
		return nil, fmt.Errorf("there is no function %s", key.function)
	case base.function.Isolation == "" && key.tenant != "":
		return nil, errTenant
	case base.function.Isolation != "" && !tenantID.MatchString(key.tenant):
		return nil, errNoTenant
	}
	if h.pools[key] == nil {
		h.pools[key] = &pool{settings: base.settings, tenant: key.tenant, instances: map[*instance]bool{}}
	}
	return h.pools[key], nil
}

// poolsOf returns the processes of a function, those of its tenants included.
func (h *Host) poolsOf(function string) []*pool {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []*pool
	for key, p := range h.pools {
		if key.function == function {
			all = append(all, p)
		}
	}
	return all
}

// Processes are the IDs of a function's processes at this moment, by its logical ID: busy, frozen and starting ones.
func (h *Host) Processes(function string) []int {
	var ids []int
	for _, p := range h.poolsOf(function) {
		p.mu.Lock()
		for i := range p.instances {
			if id := i.process.ID(); id != 0 {
				ids = append(ids, id)
			}
		}
		p.mu.Unlock()
	}
	return ids
}

// AwaitIdle waits until the function has no event left, and each of its processes is frozen or has ended. The caller
// may get the response earlier, if an extension still works.
func (h *Host) AwaitIdle(ctx context.Context, function string) error {
	busy := func(p *pool) bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return len(p.queue) > 0 || len(p.idle) < len(p.instances)
	}
	for slices.ContainsFunc(h.poolsOf(function), busy) {
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// Close ends every process. Events that run or wait end with an error.
func (h *Host) Close() {
	h.mu.Lock()
	h.end()
	h.mu.Unlock()
	h.queued.Wait()
	for _, pool := range h.pools { // the pools no longer change
		pool.close()
	}
	for _, pool := range h.pools { // the log of a function is that of its tenants, too
		_ = pool.output.close() // an error of the log cannot be logged
	}
}
