package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"time"

	"svcapi/local/demo"
	"svcapi/local/lambda"
	"svcapi/local/stack"
	"svcapi/local/workdir"
	"svcapi/shared/credit"
	"svcapi/shared/project"
	"svcapi/test/acceptance/baseline"
)

// spenders are the demo projects that the operations use. Each stack starts with fresh projects.
var spenders = []string{"managed", "byok"}

// wide is a limit that no load reaches.
var wide = project.RateLimit{Requests: 10_000_000, Window: time.Minute}

// system is a stack under load, with the hello function beside the stack.
type system struct {
	stack     *stack.Stack
	baseline  *baseline.Server
	root      string            // of the module
	dir       string            // for logs, summaries and the hello function
	variables map[string]string // of every script
	began     time.Time
	out       io.Writer
}

// settings are what one load changes of the stack's defaults.
type settings struct {
	processes  int               // most per function
	account    int               // most events at once; 0: the default
	parameters map[string]string // of the template
	limit      project.RateLimit // of the projects
}

// start starts a stack whose projects have more credits than can be spent, and the hello function.
func (s *system) start(ctx context.Context, with settings) (err error) {
	if s.root, err = workdir.Root(); err != nil {
		return err
	}
	if s.dir, err = os.MkdirTemp("", "load"); err != nil {
		return err
	}
	parameters := map[string]string{"ApiRequestsPerSecond": "100000", "ApiBurst": "100000"}
	maps.Copy(parameters, with.parameters)
	s.stack, err = stack.Start(ctx, stack.Options{
		LogDir: filepath.Join(s.dir, "stack"), Concurrency: with.processes, Account: with.account,
		Parameters: parameters,
	})
	if err != nil {
		return err
	}
	if err := s.data(ctx, with.limit); err != nil {
		return err
	}
	hello, err := baseline.Build(ctx, s.stack.Template, s.dir)
	if err != nil {
		return err
	}
	if s.baseline, err = hello.Serve(lambda.Options{LogDir: s.dir, Jail: s.stack.Jail, Concurrency: with.processes}); err != nil {
		return err
	}
	return s.describe()
}

// data gives the projects credits and a limit, before any function reads the projects.
func (s *system) data(ctx context.Context, limit project.RateLimit) error {
	for _, name := range spenders {
		if _, err := s.stack.Store.SetLimits(ctx, demo.ID(name), func(l *project.RateLimit, _ *project.Limits) { *l = limit }); err != nil {
			return err
		}
	}
	return s.stack.Credit.Grant(ctx, credit.Movement{
		Project: demo.ID("managed"), ID: credit.NewKey(time.Now(), "load"), Credits: 1_000_000_000_000, Reason: "load", Actor: "local",
	})
}

// describe sets the variables of every script.
func (s *system) describe() error {
	credentials := map[string]demo.Credential{}
	for _, name := range spenders {
		credentials[name] = demo.CredentialOf(name, project.Development)
	}
	texts, err := json.Marshal(credentials)
	if err != nil {
		return err
	}
	prices, err := json.Marshal(s.stack.Prices)
	s.variables = map[string]string{"BASE_URL": s.stack.BaseURL, "BASELINE_URL": s.baseline.URL, "CREDENTIALS": string(texts), "PRICES": string(prices)}
	return err
}

func (s *system) close() (err error) {
	if s.baseline != nil {
		err = s.baseline.Close()
	}
	if s.stack != nil {
		err = errors.Join(err, s.stack.Close())
	}
	return errors.Join(err, os.RemoveAll(s.dir))
}
