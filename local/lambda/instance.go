package lambda

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"svcapi/local/jail"
	"svcapi/local/template"
)

// instance is one process with its own Runtime API. The pool's lock guards the fields that start does not set.
type instance struct {
	pool    *pool
	process *jail.Process
	server  *http.Server
	started time.Time
	events  chan delivery // at most one waits
	gone    chan struct{} // closed when the process has ended and the pool knows

	ready      bool                  // runtime and extensions have asked for their first event
	asked      bool                  // the runtime has asked for its next event
	extensions map[string]*extension // by identifier
	init       time.Duration
	running    *event
	responded  bool        // to the running event
	timer      *time.Timer // ends it when init or the event takes too long
	timedOut   bool
	initError  string // the type of the error that the runtime has reported of its init
}

// start starts a process. The pool's lock is held.
func start(p *pool) (*instance, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	i := &instance{pool: p, started: time.Now(), events: make(chan delivery, 1), gone: make(chan struct{}),
		extensions: map[string]*extension{}}
	command := p.command
	command.Env = slices.Concat(command.Env, []string{
		"AWS_LAMBDA_RUNTIME_API=" + listener.Addr().String(),
		"AWS_LAMBDA_LOG_STREAM_NAME=" + i.started.UTC().Format("2006/01/02") + "/[$LATEST]" + random(32),
	})
	i.process, err = p.jail.Start(command)
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	i.limit(initTimeout)
	i.server = &http.Server{Handler: i.runtimeAPI()}
	go func() { _ = i.server.Serve(listener) }() // ends with the process
	go func() {
		<-i.process.Done()
		p.ended(i)
		i.server.Close()
		close(i.gone)
	}()
	return i, nil
}

// limit ends the process unless its timer is stopped within d. The pool's lock is held.
func (i *instance) limit(d time.Duration) {
	var timer *time.Timer
	timer = time.AfterFunc(d, func() {
		i.pool.mu.Lock()
		defer i.pool.mu.Unlock()
		if i.timer == timer {
			i.timedOut = true
			i.process.Kill()
		}
	})
	i.timer = timer
}

// begin hands an event to the waiting runtime and to the waiting extensions. The pool's lock is held.
func (i *instance) begin(e *event) {
	i.running, i.asked, i.responded = e, false, false
	e.began = time.Now()
	d := delivery{
		event: e, deadline: time.Now().Add(i.pool.function.Timeout),
		trace: fmt.Sprintf("Root=1-%08x-%s;Parent=%s;Sampled=0", time.Now().Unix(), random(24), random(16)),
	}
	i.limit(i.pool.function.Timeout)
	for _, x := range i.extensions {
		if x.invoke {
			e.extended, x.asked = true, false
			x.events <- d
		}
	}
	i.events <- d
}

// runtimeAPI serves the Runtime API, version 2018-06-01, and the Extensions API, version 2020-01-01, to this process.
func (i *instance) runtimeAPI() http.Handler {
	const root = "/2018-06-01/runtime/"
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+root+"invocation/next", i.next)
	mux.HandleFunc("POST "+root+"invocation/{id}/response", i.response)
	mux.HandleFunc("POST "+root+"invocation/{id}/error", i.failure)
	mux.HandleFunc("POST "+root+"init/error", func(w http.ResponseWriter, r *http.Request) {
		i.pool.mu.Lock()
		i.initError = errorType(r)
		i.pool.mu.Unlock()
		sendJSON(w, http.StatusAccepted, map[string]string{"status": "OK"})
	})
	mux.HandleFunc("POST /2020-01-01/extension/register", i.register)
	mux.HandleFunc("GET /2020-01-01/extension/event/next", i.extensionNext)
	return mux
}

func (i *instance) next(w http.ResponseWriter, r *http.Request) {
	i.pool.next(i)
	var e delivery
	select {
	case e = <-i.events:
	case <-r.Context().Done(): // the process has ended
		return
	}
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Lambda-Runtime-Aws-Request-Id", e.id)
	header.Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(e.deadline.UnixMilli(), 10))
	header.Set("Lambda-Runtime-Invoked-Function-Arn", arn(i.pool.function))
	header.Set("Lambda-Runtime-Trace-Id", e.trace)
	if i.pool.tenant != "" {
		header.Set("Lambda-Runtime-Aws-Tenant-Id", i.pool.tenant)
	}
	_, _ = w.Write(e.payload) // the process's end reports a process that is gone
}

// current returns the running event where the request names this event, and else refuses the request.
func (i *instance) current(w http.ResponseWriter, r *http.Request) (*event, time.Duration) {
	i.pool.mu.Lock()
	defer i.pool.mu.Unlock()
	if i.running == nil || i.running.id != r.PathValue("id") {
		refuse(w, http.StatusBadRequest, "InvalidRequestID", "this event does not run here")
		return nil, 0
	}
	init := i.init
	i.init = 0
	return i.running, init
}

func (i *instance) response(w http.ResponseWriter, r *http.Request) {
	e, init := i.current(w, r)
	if e == nil {
		return
	}
	// Runtimes announce a stream by the mode; Go's by the media type alone.
	streamed := r.Header.Get("Lambda-Runtime-Function-Response-Mode") == "streaming" ||
		r.Header.Get("Content-Type") == "application/vnd.awslambda.http-integration-response"
	limit := int64(MaxResponse)
	if streamed {
		limit = MaxStream
	}
	body := http.MaxBytesReader(w, r.Body, limit)
	result := Result{Streamed: streamed, Init: init}
	var toCaller *stream
	var err error
	if streamed && e.streams {
		toCaller = newStream()
		result.Stream = toCaller
		e.deliver(result)
		_, err = io.Copy(toCaller, body)
	} else {
		result.Payload, err = io.ReadAll(body)
	}
	i.pool.output.take(false)
	var failure *FunctionError
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		failure = &FunctionError{"Function.ResponseSizeTooLarge",
			fmt.Sprintf("Response payload size exceeded maximum allowed payload size (%d bytes).", limit)}
	} else if err != nil {
		failure = &FunctionError{exitError, "the function ended in the midst of its response"}
	} else if kind := r.Trailer.Get("Lambda-Runtime-Function-Error-Type"); kind != "" {
		failure = &FunctionError{kind, "the function failed in the midst of its stream"}
	}
	if failure != nil {
		i.pool.fail(e, failure.Kind, failure.Message)
		toCaller.end(failure)
	} else {
		e.finish(result)
		toCaller.end(io.EOF)
	}
	if err != nil {
		refuse(w, http.StatusRequestEntityTooLarge, "RequestEntityTooLarge", failure.Message)
		return
	}
	i.respond(e)
	sendJSON(w, http.StatusAccepted, map[string]string{"status": "OK"})
}

func (i *instance) failure(w http.ResponseWriter, r *http.Request) {
	e, init := i.current(w, r)
	if e == nil {
		return
	}
	body, _ := io.ReadAll(io.LimitReader(r.Body, MaxResponse)) // an incomplete body is used as far as it was read
	i.pool.output.take(false)
	i.pool.report(e, errorType(r))
	e.finish(Result{Payload: body, FunctionError: "Unhandled", Init: init})
	i.respond(e)
	sendJSON(w, http.StatusAccepted, map[string]string{"status": "OK"})
}

// validType matches the types of errors that Lambda takes from a runtime.
var validType = regexp.MustCompile(`(Runtime|Function)\.[A-Z][a-zA-Z]+`)

// errorType returns the type of an error that the runtime reports (aws-lambda-runtime-interface-emulator,
// fatalerror.GetValidRuntimeOrFunctionErrorType).
func errorType(r *http.Request) string {
	kind := r.Header.Get("Lambda-Runtime-Function-Error-Type")
	switch {
	case validType.MatchString(kind):
		return kind
	case strings.HasPrefix(kind, "Function."):
		return "Function.Unknown"
	}
	return "Runtime.Unknown"
}

// respond notes the response, and stops the event's clock unless an extension is at work: the function's timeout
// includes that work. The event stays the running one until the runtime and all extensions have asked for the next.
func (i *instance) respond(e *event) {
	i.pool.mu.Lock()
	defer i.pool.mu.Unlock()
	i.responded = i.responded || i.running == e
	if i.running == e && !i.atWork() {
		i.timer.Stop()
	}
}

func refuse(w http.ResponseWriter, status int, kind, message string) {
	sendJSON(w, status, map[string]string{"errorType": kind, "errorMessage": message})
}

func arn(f template.Function) string {
	return "arn:aws:lambda:" + template.Region + ":" + template.AccountID + ":function:" + f.Name
}

// AccessKeyID is the test access key that a function's processes sign with: emulators distinguish functions by the key.
func AccessKeyID(f template.Function) string { return "LOCAL" + strings.ToUpper(f.Folder) }

// environment returns the variables of a function's processes: extra's before the template's before Lambda's.
func environment(f template.Function, taskRoot string, extra map[string]string) map[string]string {
	variables := map[string]string{
		"_HANDLER":                        f.Handler,
		"AWS_ACCESS_KEY_ID":               AccessKeyID(f),
		"AWS_SECRET_ACCESS_KEY":           "local",
		"AWS_SESSION_TOKEN":               "local",
		"AWS_REGION":                      template.Region,
		"AWS_DEFAULT_REGION":              template.Region,
		"AWS_LAMBDA_FUNCTION_NAME":        f.Name,
		"AWS_LAMBDA_FUNCTION_MEMORY_SIZE": strconv.Itoa(f.MemoryMB),
		"AWS_LAMBDA_FUNCTION_VERSION":     "$LATEST",
		"AWS_LAMBDA_INITIALIZATION_TYPE":  "on-demand",
		"AWS_LAMBDA_LOG_GROUP_NAME":       f.LogGroup,
		"LAMBDA_TASK_ROOT":                taskRoot,
		"LAMBDA_RUNTIME_DIR":              "/var/runtime",
		"LANG":                            "en_US.UTF-8",
		"LD_LIBRARY_PATH":                 "/lib64:/usr/lib64:/var/runtime:/var/runtime/lib:/var/task:/var/task/lib:/opt/lib",
		"PATH":                            "/usr/local/bin:/usr/bin:/bin:/opt/bin",
		"TZ":                              ":UTC",
	}
	if f.LogFormat == "JSON" {
		variables["AWS_LAMBDA_LOG_FORMAT"] = f.LogFormat
		variables["AWS_LAMBDA_LOG_LEVEL"] = f.LogLevel
	}
	maps.Copy(variables, f.Environment)
	maps.Copy(variables, extra)
	return variables
}

func random(digits int) string { return strings.ReplaceAll(uuid.NewString(), "-", "")[:digits] }

// maxExtensions is Lambda's quota of extensions of one function.
const maxExtensions = 10

// extension is an internal extension of an instance: a part of the function's own process that asks for events, too.
// The pool's lock guards it.
type extension struct {
	name   string
	invoke bool          // the extension gets INVOKE events
	asked  bool          // the extension has asked for its next event
	events chan delivery // at most one waits
}

// register registers an internal extension. Lambda refuses SHUTDOWN to internal extensions, and a registration after
// the runtime has asked for its first event. An error of the Extensions API is a 403 with the type that Lambda gives it
// (AWS Lambda Developer Guide, Extensions API reference).
func (i *instance) register(w http.ResponseWriter, r *http.Request) {
	name := r.Header.Get("Lambda-Extension-Name")
	var body struct{ Events []string }
	text, err := io.ReadAll(io.LimitReader(r.Body, 64<<10))
	if err == nil {
		err = json.Unmarshal(text, &body)
	}
	refused := slices.DeleteFunc(slices.Clone(body.Events), func(kind string) bool { return kind == "INVOKE" })
	i.pool.mu.Lock()
	defer i.pool.mu.Unlock()
	others := slices.Collect(maps.Values(i.extensions))
	kind, problem := "", ""
	switch {
	case name == "":
		kind, problem = "Extension.InvalidExtensionName", "Empty extension name"
	case err != nil:
		kind, problem = "InvalidRequestFormat", err.Error()
	case len(refused) > 0 && refused[0] == "SHUTDOWN":
		kind, problem = "Extension.InvalidEventType", "SHUTDOWN: ShutdownEventNotSupportedForInternalExtension"
	case len(refused) > 0:
		kind, problem = "Extension.InvalidEventType", refused[0]+": InvalidEventType"
	case i.asked || i.ready:
		kind, problem = "Extension.RegistrationClosed", "Extension registration closed already"
	case len(others) == maxExtensions:
		kind, problem = "Extension.TooManyExtensions", "Extension limit (10) reached"
	case slices.ContainsFunc(others, func(other *extension) bool { return other.name == name }):
		kind, problem = "Extension.InvalidExtensionState", "Extension with this name already registered"
	}
	if kind != "" {
		refuse(w, http.StatusForbidden, kind, problem)
		return
	}
	id := uuid.NewString()
	i.extensions[id] = &extension{name: name, invoke: len(body.Events) > 0, events: make(chan delivery, 1)}
	w.Header().Set("Lambda-Extension-Identifier", id)
	f := i.pool.function
	sendJSON(w, http.StatusOK, map[string]string{
		"functionName": f.Name, "functionVersion": "$LATEST", "handler": f.Handler, "accountId": template.AccountID,
	})
}

// extensionNext gives an extension its next event. An extension without INVOKE waits until the process ends.
func (i *instance) extensionNext(w http.ResponseWriter, r *http.Request) {
	id := r.Header.Get("Lambda-Extension-Identifier")
	i.pool.output.take(false)
	i.pool.mu.Lock()
	e, kind, problem := i.extensions[id], "", ""
	switch {
	case id == "":
		kind, problem = "Extension.MissingHeader", "Missing Lambda-Extension-Identifier header"
	case e == nil:
		kind, problem = "Extension.UnknownExtensionIdentifier", "Unknown extension "+id
	case e.asked:
		kind, problem = "Extension.InvalidExtensionState", "The extension waits for its next event already"
	default:
		e.asked = true
		i.pool.rest(i)
	}
	i.pool.mu.Unlock()
	if kind != "" {
		refuse(w, http.StatusForbidden, kind, problem)
		return
	}
	var next delivery
	select {
	case next = <-e.events:
	case <-r.Context().Done(): // the process has ended
		return
	}
	sendJSON(w, http.StatusOK, map[string]any{
		"eventType": "INVOKE", "deadlineMs": next.deadline.UnixMilli(), "requestId": next.id,
		"invokedFunctionArn": arn(i.pool.function),
		"tracing":            map[string]string{"type": "X-Amzn-Trace-Id", "value": next.trace},
	})
}

// atWork reports that an extension has not asked for its next event. The pool's lock is held.
func (i *instance) atWork() bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(i.extensions)), func(e *extension) bool { return !e.asked })
}

func sendJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the process, or the caller, may be gone
}
