package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"svcapi/local/demo"
	"svcapi/local/engine"
	"svcapi/local/lambda"
	"svcapi/local/stack"
	"svcapi/local/workdir"
	"svcapi/shared/credit"
	"svcapi/shared/project"
	"svcapi/test/acceptance/anchor"
)

// spenders are the demo projects that the operations use. No other load runs on them: a stack starts with fresh ones.
var spenders = []string{"managed", "byok"}

// wide is a limit that no load reaches.
var wide = project.RateLimit{Requests: 10_000_000, Window: time.Minute}

// system is a stack under load, with the anchor beside it.
type system struct {
	stack      *stack.Stack
	anchor     *anchor.Server
	credits    *credit.Store
	dir        string // for logs, summaries and the hello function
	scripts    string
	k6         string
	operations []operation
	began      time.Time
	out        io.Writer
}

// settings are what one load wants other than the stack's defaults.
type settings struct {
	processes  int               // most per function
	account    int               // most events at once; 0: the default
	parameters map[string]string // of the template
	limit      project.RateLimit // of the projects
}

// start starts a stack whose projects have more credits than can be spent, and the anchor.
func start(ctx context.Context, out io.Writer, with settings) (s *system, err error) {
	s = &system{out: out, began: time.Now()}
	if s.operations, err = operations(); err != nil {
		return nil, err
	}
	root, err := workdir.Root()
	if err != nil {
		return nil, err
	}
	s.scripts, s.k6 = filepath.Join(root, "test", "load", "scripts"), filepath.Join(root, ".local", "bin", "k6")
	if s.dir, err = os.MkdirTemp("", "load"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
			s = nil
		}
	}()
	parameters := map[string]string{"ApiRequestsPerSecond": "100000", "ApiBurst": "100000"}
	maps.Copy(parameters, with.parameters)
	s.stack, err = stack.Start(ctx, stack.Options{
		LogDir: filepath.Join(s.dir, "stack"), Concurrency: with.processes, Account: with.account, Parameters: parameters,
	})
	if err != nil {
		return s, err
	}
	if err := s.data(ctx, with.limit); err != nil {
		return s, err
	}
	hello, err := anchor.Build(ctx, s.stack.Template, s.dir)
	if err != nil {
		return s, err
	}
	s.anchor, err = hello.Serve(lambda.Options{LogDir: s.dir, Jail: s.stack.Jail, Concurrency: with.processes})
	return s, err
}

// data gives the projects credits and a limit. No function has read them yet.
func (s *system) data(ctx context.Context, limit project.RateLimit) error {
	table := map[string]string{}
	for _, t := range s.stack.Template.Tables {
		table[t.LogicalID] = t.Name
	}
	db := engine.Client(s.stack.DynamoDBURL)
	s.credits = credit.NewStore(db, credit.Tables{Wallets: table["Wallets"], Ledger: table["Ledger"]})
	projects := project.NewStore(db, table["Projects"])
	for _, name := range spenders {
		if _, err := projects.SetLimit(ctx, demo.ID(name), limit); err != nil {
			return err
		}
	}
	return s.credits.Grant(ctx, credit.Movement{
		Project: demo.ID("managed"), ID: credit.NewKey(time.Now(), "load"), Credits: 1_000_000_000_000, Reason: "load", Actor: "local",
	})
}

// environment is what the scripts are told.
func (s *system) environment() (map[string]string, error) {
	credentials, prices := map[string]demo.Credential{}, map[string]int64{}
	for _, name := range spenders {
		credentials[name] = demo.CredentialOf(name, project.Development)
	}
	for _, o := range s.operations {
		if o.Charges != "" {
			prices[o.Charges] = s.stack.Prices.Of(o.Charges)
		}
	}
	environment := map[string]string{"BASE_URL": s.stack.BaseURL, "ANCHOR_URL": s.anchor.URL}
	for name, value := range map[string]any{"CREDENTIALS": credentials, "PRICES": prices} {
		text, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		environment[name] = string(text)
	}
	return environment, nil
}

func (s *system) close() error {
	var errs []error
	if s.anchor != nil {
		errs = append(errs, s.anchor.Close())
	}
	if s.stack != nil {
		errs = append(errs, s.stack.Close())
	}
	return errors.Join(append(errs, os.RemoveAll(s.dir))...)
}

// setting reads a number or a duration that the environment may override.
func setting[T int | time.Duration](name string, standard T) (T, error) {
	text := os.Getenv(name)
	if text == "" {
		return standard, nil
	}
	var value T
	switch any(standard).(type) {
	case time.Duration:
		d, err := time.ParseDuration(text)
		if err != nil || d <= 0 {
			return 0, fmt.Errorf("%s=%s is no duration, such as 90s or 20m", name, text)
		}
		value = T(d)
	default:
		n, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil || n <= 0 {
			return 0, fmt.Errorf("%s=%s is no number above 0", name, text)
		}
		value = T(n)
	}
	return value, nil
}
