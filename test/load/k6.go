package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"

	"svcapi/local/process"
)

// thresholdsFailed is k6's exit status for a run whose thresholds did not hold.
const thresholdsFailed = 99

// report is what k6 leaves of a run.
type report struct {
	Metrics map[string]struct {
		Values     map[string]float64 `json:"values"`
		Thresholds map[string]struct {
			OK bool `json:"ok"`
		} `json:"thresholds"`
	} `json:"metrics"`
}

// value is one figure of a metric; 0 where it counted nothing.
func (r *report) value(metric, figure string) float64 { return r.Metrics[metric].Values[figure] }

func (r *report) count(metric string) int { return int(r.value(metric, "count")) }

// failures names the thresholds that did not hold.
func (r *report) failures() []string {
	var list []string
	for name, metric := range r.Metrics {
		for threshold, result := range metric.Thresholds {
			if !result.OK {
				list = append(list, name+": "+threshold)
			}
		}
	}
	slices.Sort(list)
	return list
}

// child is a k6 that runs.
type child struct {
	process *process.Process
	summary string
	stop    func() bool
}

// load starts k6 with a script. It sends nothing but the script's requests: no usage report, no look-up of extensions,
// no host names, no port of its own.
func (s *system) load(ctx context.Context, script string, settings map[string]string) (*child, error) {
	environment, err := s.environment()
	if err != nil {
		return nil, err
	}
	home, err := os.MkdirTemp(s.dir, "k6")
	if err != nil {
		return nil, err
	}
	c := &child{summary: filepath.Join(home, "summary.json")}
	cmd := exec.Command(s.k6, "run", "--quiet", "--no-color", "--no-usage-report", "--address", "", "--block-hostnames", "*",
		filepath.Join(s.scripts, script))
	cmd.Dir, cmd.Stdout, cmd.Stderr = home, s.out, s.out
	cmd.Env = []string{
		"HOME=" + home, "XDG_CONFIG_HOME=" + home, "PATH=" + os.Getenv("PATH"), "SUMMARY=" + c.summary,
		"K6_NO_USAGE_REPORT=true", "K6_AUTO_EXTENSION_RESOLUTION=false",
	}
	for _, layer := range []map[string]string{environment, settings} {
		for name, value := range layer {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	if c.process, err = process.Start(cmd); err != nil {
		return nil, err
	}
	c.stop = context.AfterFunc(ctx, c.process.Kill)
	return c, nil
}

// wait waits for the end of the run. Thresholds that did not hold are the report's to tell.
func (c *child) wait(ctx context.Context) (*report, error) {
	<-c.process.Done()
	c.stop()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if exit := (*exec.ExitError)(nil); c.process.Err() != nil && (!errors.As(c.process.Err(), &exit) || exit.ExitCode() != thresholdsFailed) {
		return nil, fmt.Errorf("k6: %w", c.process.Err())
	}
	text, err := os.ReadFile(c.summary)
	if err != nil {
		return nil, err
	}
	r := &report{}
	return r, json.Unmarshal(text, r)
}

// run is load and wait.
func (s *system) run(ctx context.Context, script string, settings map[string]string) (*report, error) {
	c, err := s.load(ctx, script, settings)
	if err != nil {
		return nil, err
	}
	return c.wait(ctx)
}

func decimal(n int) string { return strconv.Itoa(n) }
