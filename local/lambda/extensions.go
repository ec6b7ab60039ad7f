package lambda

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"slices"

	"github.com/google/uuid"

	"svcapi/local/template"
)

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
	if id == "" {
		refuse(w, http.StatusForbidden, "Extension.MissingHeader", "Missing Lambda-Extension-Identifier header")
		return
	}
	i.pool.output.take(false)
	i.pool.mu.Lock()
	e := i.extensions[id]
	waits := e != nil && e.asked
	if e != nil && !waits {
		e.asked = true
		i.pool.rest(i)
	}
	i.pool.mu.Unlock()
	if e == nil {
		refuse(w, http.StatusForbidden, "Extension.UnknownExtensionIdentifier", "Unknown extension "+id)
		return
	}
	if waits {
		refuse(w, http.StatusForbidden, "Extension.InvalidExtensionState", "The extension waits for its next event already")
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
	for _, e := range i.extensions {
		if !e.asked {
			return true
		}
	}
	return false
}

func sendJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the process, or the caller, may be gone
}
