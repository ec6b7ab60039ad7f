// Package baseline serves a hello function behind a gateway of its own, as the stack serves the product's functions.
// The hello function's figures are the baseline of the product's figures in the same run.
package baseline

import (
	"context"
	"errors"
	"io"
	"path/filepath"

	"svcapi/local/build"
	"svcapi/local/gateway"
	"svcapi/local/lambda"
	"svcapi/local/template"
)

// Hello is the smallest function for the gateway. Hello has the SMS function's routes and settings.
type Hello struct {
	Function template.Function
	Binary   string

	template *template.Template
}

// Build compiles the hello function into a folder.
func Build(ctx context.Context, t *template.Template, dir string) (*Hello, error) {
	like, ok := t.Function("sms")
	if !ok {
		return nil, errors.New("the template has no function sms")
	}
	h := &Hello{Function: like, Binary: filepath.Join(dir, "hello"), template: t}
	h.Function.LogicalID, h.Function.Folder, h.Function.Environment, h.Function.Schedules = "HelloFunction", "hello", nil,
		nil
	return h, build.Packages(ctx, h.Binary, "./test/hello")
}

// Server responds to every route of the SMS function with hello.
type Server struct {
	// URL is the address for POST requests.
	URL string

	host   *lambda.Host
	server *gateway.Server
}

// Serve serves the function with as many processes as options say, without the stage's throttle.
func (h *Hello) Serve(options lambda.Options) (*Server, error) {
	host, err := lambda.HostOf(options, h.Function, h.Binary)
	if err != nil {
		return nil, err
	}
	api := *h.template
	api.Functions, api.API.Throttles = []template.Function{h.Function}, nil
	server, err := gateway.Start("127.0.0.1:0", &api, host, io.Discard)
	if err != nil {
		host.Close()
		return nil, err
	}
	return &Server{server.URL + "/api/v1/sms/balance", host, server}, nil
}

// Processes returns the IDs of the function's running processes.
func (s *Server) Processes() []int { return s.host.Processes("HelloFunction") }

// Close ends the server and the function's processes.
func (s *Server) Close() error {
	err := s.server.Close()
	s.host.Close()
	return err
}
