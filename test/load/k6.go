package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"svcapi/local/process"
)

// thresholdsFailed is k6's exit status for a run whose thresholds did not hold.
const thresholdsFailed = 99

// report is the summary that the scripts write.
type report struct {
	Values map[string]map[string]float64 `json:"values"` // by metric and figure
	Failed []string                      `json:"failed"` // thresholds that did not hold
	Paid   map[string]int                `json:"paid"`   // successes by the price list's names
}

// count returns how often a metric was counted.
func (r *report) count(metric string) int { return int(r.Values[metric]["count"]) }

// k6 runs a script. k6 sends nothing but the script's requests: no usage report, no look-up of extensions, no host names,
// no port of its own.
func (s *system) k6(ctx context.Context, script string, variables map[string]string) (*report, error) {
	home, err := os.MkdirTemp(s.dir, "k6")
	if err != nil {
		return nil, err
	}
	summary := filepath.Join(home, "summary.json")
	cmd := exec.Command(filepath.Join(s.root, ".local", "bin", "k6"), "run", "--quiet", "--no-color", "--no-usage-report", "--address", "",
		"--block-hostnames", "*", filepath.Join(s.root, "test", "load", "scripts", script))
	cmd.Dir, cmd.Stdout, cmd.Stderr = home, s.out, s.out
	cmd.Env = []string{
		"HOME=" + home, "XDG_CONFIG_HOME=" + home, "PATH=" + os.Getenv("PATH"), "SUMMARY=" + summary,
		"K6_NO_USAGE_REPORT=true", "K6_AUTO_EXTENSION_RESOLUTION=false",
	}
	for _, more := range []map[string]string{s.variables, variables} {
		for name, value := range more {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	child, err := process.Start(cmd)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, child.Kill)
	<-child.Done()
	stop()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if exit, ok := errors.AsType[*exec.ExitError](child.Err()); child.Err() != nil && (!ok || exit.ExitCode() != thresholdsFailed) {
		return nil, fmt.Errorf("k6: %w", child.Err())
	}
	text, err := os.ReadFile(summary)
	if err != nil {
		return nil, err
	}
	r := &report{}
	return r, json.Unmarshal(text, r)
}
