// Package events reads the folder events: files, and the cases of cases.json, which the gateway converts into events.
package events

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"svcapi/local/demo"
	"svcapi/local/gateway"
	"svcapi/local/template"
	"svcapi/shared/project"
)

// Case is an event: the file of its name, or a request of cases.json.
type Case struct {
	Function string // the logical ID
	About    string
	Expected Expected

	// The request, where the event has no file.
	Method, Path string
	Project      string            // the demo project whose credentials for development the request has; empty: none
	Headers      map[string]string // besides those of every request
	Body         json.RawMessage
}

// Expected is the expected result of a function for an event. "*" matches any text.
type Expected struct {
	Status  int               // of a response over HTTP
	Headers map[string]string // besides those of every response
	Body    any
	Varies  []string // the fields of data that have another number each time
	Result  any      // of a function that serves no HTTP requests
}

// IsFile reports whether an event has its own file.
func IsFile(name string) bool { return strings.HasSuffix(name, ".json") }

// Read returns the events of a folder, by the name of their file or of their case.
func Read(folder string) (map[string]Case, error) {
	all := map[string]Case{}
	for _, list := range []string{"responses.json", "cases.json"} {
		text, err := os.ReadFile(filepath.Join(folder, list))
		if err != nil {
			return nil, err
		}
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&all); err != nil {
			return nil, fmt.Errorf("%s: %w", list, err)
		}
	}
	return all, nil
}

// Event returns the event that a template's gateway sends for the case's request, and the called function's logical ID.
func (c Case) Event(t *template.Template) (function string, event []byte, err error) {
	var body bytes.Buffer
	headers := map[string]string{"Accept": "application/json", "User-Agent": "curl/8.7.1"}
	if len(c.Body) > 0 {
		headers["Content-Type"] = "application/json"
		if err := json.Compact(&body, c.Body); err != nil {
			return "", nil, err
		}
	}
	if c.Project != "" {
		credential := demo.CredentialOf(c.Project, project.Development)
		headers["X-API-KEY"], headers["X-API-SECRET"] = credential.ClientID, credential.ClientSecret
		headers["X-ENV"] = string(project.Development)
	}
	maps.Copy(headers, c.Headers)
	r, err := http.NewRequest(c.Method, "http://local.execute-api."+template.Region+".amazonaws.com"+c.Path, &body)
	if err != nil {
		return "", nil, err
	}
	r.RemoteAddr = "127.0.0.1:0"
	for name, value := range headers {
		r.Header[name] = []string{value} // as it is written: X-API-KEY
	}
	return gateway.Event(t, r)
}

// Load returns the content of an event: of a file, or of a case of the folder, by its name.
func Load(t *template.Template, folder, name string) ([]byte, error) {
	if IsFile(name) {
		event, err := os.ReadFile(name)
		if err == nil && !json.Valid(event) {
			err = fmt.Errorf("%s holds no JSON", name)
		}
		return event, err
	}
	all, err := Read(folder)
	if err != nil {
		return nil, err
	}
	c, ok := all[name]
	if !ok {
		return nil, errors.New(name + " is neither a file of the form NAME.json nor a case of " +
			filepath.Join(folder, "cases.json"))
	}
	_, event, err := c.Event(t)
	return event, err
}
