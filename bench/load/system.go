package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"svcapi/bench/baseline"
	"svcapi/local/demo"
	"svcapi/local/lambda"
	"svcapi/local/process"
	"svcapi/local/stack"
	"svcapi/local/workdir"
	"svcapi/shared/project"
	"svcapi/shared/wallet"
)

// spenders are the demo projects that the operations use. Each stack starts with fresh projects. Operations on managed
// cost credits, those on byok are free.
var spenders = []string{"managed", "byok"}

// wide is a limit that no load reaches.
var wide = project.RateLimit{Requests: 10_000_000, Window: time.Minute}

// system is a stack under load, with the hello function beside the stack.
type system struct {
	out       io.Writer // for the person who reads the figures
	stack     *stack.Stack
	baseline  *baseline.Server
	root, dir string         // of the module; for logs, summaries and the hello function
	variables map[string]any // of every script
	charged   int64          // the price of all successes that k6 has counted
}

// settings are what one load changes of the stack's defaults.
type settings struct {
	processes  int               // most per function
	account    int               // most events at once; 0: the default
	parameters map[string]string // of the template
	limit      project.RateLimit // of the projects
}

// within runs a load on a stack of its own, and compares the money afterwards.
func within(ctx context.Context, out io.Writer, with settings, run func(*system) error) error {
	s := &system{out: out}
	err := s.start(ctx, with)
	if err == nil {
		before := s.balances(ctx)
		if err = run(s); err != nil && ctx.Err() == nil {
			err = errors.Join(err, s.causes(ctx))
		}
		err = errors.Join(err, s.money(ctx, before))
	}
	if s.baseline != nil {
		err = errors.Join(err, s.baseline.Close())
	}
	if s.stack != nil {
		err = errors.Join(err, s.stack.Close())
	}
	return errors.Join(err, os.RemoveAll(s.dir))
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
		LogDir: filepath.Join(s.dir, "stack"), Concurrency: with.processes, Account: with.account, Parameters: parameters,
	})
	if err != nil {
		return err
	}
	credentials := map[string]demo.Credential{}
	for _, name := range spenders {
		credentials[name] = demo.CredentialOf(name, project.Development)
		if _, err := s.stack.Store.Update(ctx, demo.ID(name), func(p *project.Project) { p.Limit = with.limit }); err != nil {
			return err
		}
	}
	if err := s.stack.Credit.Grant(ctx, wallet.Entry{
		Project: demo.ID("managed"), Key: wallet.NewKey(time.Now(),
			"load"), Credits: 1_000_000_000_000, Reason: "load", Actor: "local",
	}); err != nil {
		return err
	}
	hello, err := baseline.Build(ctx, s.stack.Template, s.dir)
	if err != nil {
		return err
	}
	if s.baseline, err = hello.Serve(lambda.Options{LogDir: s.dir, Jail: s.stack.Jail,
		Concurrency: with.processes}); err != nil {
		return err
	}
	texts, err := json.Marshal(map[string]any{"credentials": credentials, "prices": s.stack.Prices})
	s.variables = map[string]any{"BASE_URL": s.stack.BaseURL, "BASELINE_URL": s.baseline.URL, "PROJECTS": string(texts)}
	return err
}

// k6 runs a script and returns the figures that the script hands over. A threshold that does not hold is an error. k6
// sends nothing but the script's requests, and opens no port.
func (s *system) k6(ctx context.Context, script string,
	variables map[string]any) (figures map[string]float64, err error) {
	home, err := os.MkdirTemp(s.dir, "k6")
	if err != nil {
		return nil, err
	}
	summary := filepath.Join(home, "summary.json")
	cmd := exec.Command(filepath.Join(s.root, ".local", "bin", "k6"), "run", "--quiet", "--no-color", "--no-usage-report",
		"--address", "", "--block-hostnames", "*", filepath.Join(s.root, "bench", "load", "scripts", script))
	cmd.Dir, cmd.Stdout, cmd.Stderr = home, s.out, s.out
	cmd.Env = []string{
		"HOME=" + home, "XDG_CONFIG_HOME=" + home, "PATH=" + os.Getenv("PATH"), "SUMMARY=" + summary,
		"K6_NO_USAGE_REPORT=true", "K6_AUTO_EXTENSION_RESOLUTION=false",
	}
	for _, more := range []map[string]any{s.variables, variables} {
		for name, value := range more {
			cmd.Env = append(cmd.Env, fmt.Sprint(name, "=", value))
		}
	}
	child, err := process.Start(cmd)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, child.Kill)
	<-child.Done()
	stop()
	if err = errors.Join(ctx.Err(), child.Err()); err != nil {
		err = fmt.Errorf("k6 %s: %w", script, err)
	}
	text, missing := os.ReadFile(summary)
	if missing != nil {
		return nil, errors.Join(err, missing)
	}
	err = errors.Join(err, json.Unmarshal(text, &figures))
	s.charged += int64(figures["charged"])
	return figures, err
}

// balances returns the credits of the projects that no reservation holds.
func (s *system) balances(ctx context.Context) (sum int64) {
	for _, name := range spenders {
		if w, err := s.stack.Credit.Wallet(ctx, demo.ID(name)); err == nil { // else the comparison fails
			sum += w.Balance
		}
	}
	return sum
}

// money checks that the wallets paid exactly for the successes that k6 has counted, and compares every wallet with its
// ledger, as "svc ledger verify" does, after the stack's settler has returned what died requests had reserved.
func (s *system) money(ctx context.Context, before int64) error {
	settled, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	for settled.Err() == nil {
		if w, err := s.stack.Credit.Wallet(ctx, demo.ID("managed")); err != nil || w.Reserved == 0 {
			break // Verify reports the error, too
		}
		select {
		case <-time.After(time.Second):
		case <-settled.Done():
		}
	}
	verified, err := s.stack.Credit.Verify(ctx, nil)
	if err != nil {
		return err
	}
	var wrong []error
	for _, f := range verified.Findings {
		wrong = append(wrong, fmt.Errorf("ledger: %s %s %s %s", f.Project, f.Damage, f.Key, f.Detail))
	}
	paid := before - s.balances(ctx)
	if paid != s.charged {
		wrong = append(wrong, fmt.Errorf("the wallets paid %d credits, k6 counted successes for %d", paid, s.charged))
	}
	fmt.Fprintf(s.out, "\nMoney: %d credits for the successes on paid operations; %d wallets with %d ledger entries; %d "+
		"errors.\n",
		paid, verified.Wallets, verified.Entries, len(wrong))
	return errors.Join(wrong...)
}

// causes prints the most frequent errors in the logs of the functions and the gateway.
func (s *system) causes(ctx context.Context) error {
	const count = `cd "$0" && grep -oE '"(error|failure)":"[^"]{1,200}' *.log | sort | uniq -c | sort -rn | head -8`
	text, err := exec.CommandContext(ctx, "sh", "-c", count, s.stack.LogDir).Output()
	if len(text) > 0 {
		fmt.Fprintf(s.out, "\nWhy requests were refused, by the logs:\n%s", text)
	}
	return err
}
