package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"svcapi/local/process"
)

const mib = 1 << 20

// A process grows when the median of its size in the last quarter of a run is above that of the second quarter by both
// of these. The first quarter is for warming up. A Go heap takes 4 MiB before the first collection.
const (
	flatShare = 0.10
	flatBytes = 4 * mib
)

// part is a part of the system whose memory is watched: the processes of one function, or another program.
type part struct {
	name   string
	judged bool // false for programs that replace AWS and clients, and keep what they receive
	tree   bool // with all descendants, whose shared pages count once
	pids   func() []int
	sizes  []map[int]int64 // in bytes, at each tick of the run, by process ID
}

// parts returns what a soak watches.
func (s *system) parts() []part {
	self := os.Getpid()
	children := func(program string) func() []int {
		return func() []int {
			return slices.DeleteFunc(process.Children(self), func(pid int) bool {
				name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)) // a process that has ended has no name
				return strings.TrimSpace(string(name)) != program
			})
		}
	}
	list := []part{
		{name: "gateway, function host, secrets, sandbox", judged: true, pids: func() []int { return []int{self} }},
		{name: "hello function", pids: s.baseline.Processes},
		{name: "DynamoDB Local", pids: children("java")}, {name: "k6", pids: children("k6")},
	}
	for _, f := range s.stack.Template.Functions {
		pids := func() []int { return s.stack.Processes(f.LogicalID) }
		list = append(list, part{name: f.Folder + " function", judged: true, pids: pids})
		if f.Folder == "pdfrender" {
			list = append(list, part{name: "pdfrender function with its browser", judged: true, tree: true, pids: pids})
		}
	}
	return list
}

// watchMemory measures every part at each tick of a clock, from the first tick with a process of every judged part
// until the returned function is called. That function prints the sizes and returns what grows.
func watchMemory(ctx context.Context, out io.Writer, parts []part, every time.Duration,
	tick func()) (end func() error) {
	if runtime.GOOS != "linux" {
		fmt.Fprintln(out, "\nMemory is not measured: the size of processes is read from Linux's /proc.")
		return func() error { return nil }
	}
	ctx, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for running := false; ctx.Err() == nil; {
			all := true
			for i := range parts {
				sizes := map[int]int64{}
				for _, pid := range parts[i].pids() {
					if bytes := size(pid, parts[i].tree); bytes > 0 {
						sizes[pid] = bytes
					}
				}
				all = all && (len(sizes) > 0 || !parts[i].judged)
				parts[i].sizes = append(parts[i].sizes, sizes)
			}
			if !running { // k6 still starts the processes: the run begins with the last of them
				running = all
				for i := range parts {
					parts[i].sizes = parts[i].sizes[:0:0]
				}
			}
			tick()
			select {
			case <-ctx.Done():
			case <-time.After(every):
			}
		}
	}()
	return func() error {
		stop()
		<-done
		return reportMemory(out, parts)
	}
}

// size returns the bytes that a process uses, of a tree the sum of proportional shares; 0: the process has ended.
func size(pid int, tree bool) (sum int64) {
	file, field := "status", "\nVmRSS:"
	if tree {
		file, field = "smaps_rollup", "\nPss:"
		for _, child := range process.Children(pid) {
			sum += size(child, true)
		}
	}
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
	_, rest, _ := strings.Cut(string(text), field)
	value, _, _ := strings.Cut(rest, " kB")
	kilobytes, _ := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
	return sum + kilobytes<<10
}

// median returns the middle of a process's sizes in a quarter of the run; 0: the process did not run in that quarter.
func (p *part) median(pid, quarter int) int64 {
	var list []int64
	for _, sizes := range p.sizes[len(p.sizes)*(quarter-1)/4 : len(p.sizes)*quarter/4] {
		if bytes, ok := sizes[pid]; ok {
			list = append(list, bytes)
		}
	}
	if len(list) == 0 {
		return 0
	}
	slices.Sort(list)
	return list[len(list)/2]
}

// early reports whether a process ran before the second quarter of the run, or soon after its beginning.
func (p *part) early(pid int) bool {
	first := slices.IndexFunc(p.sizes, func(sizes map[int]int64) bool { return sizes[pid] > 0 })
	return first <= len(p.sizes)*3/10
}

// reportMemory prints the growth of the process of each part that grew most, and returns which product's parts grow.
func reportMemory(out io.Writer, parts []part) error {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "\nLargest growth of a process\tprocesses\tMiB, second quarter\tlast quarter\t\t\n")
	var wrong []error
	for _, p := range parts {
		pids := map[int]bool{}
		for _, sizes := range p.sizes {
			for pid := range sizes {
				pids[pid] = true
			}
		}
		var from, to int64
		for pid := range pids {
			before, after := p.median(pid, 2), p.median(pid, 4)
			if before > 0 && after > 0 && p.early(pid) && (from == 0 || after-before > to-from) {
				from, to = before, after
			}
		}
		verdict := "flat"
		switch {
		case !p.judged:
			verdict = "not the product"
		case from == 0:
			verdict = "NOT THERE"
			wrong = append(wrong, fmt.Errorf("%s: no process ran from the second quarter to the end", p.name))
		case float64(to-from) > max(flatShare*float64(from), flatBytes):
			verdict = "GROWS"
			wrong = append(wrong, fmt.Errorf("%s: one process grew from %.1f to %.1f MiB", p.name,
				float64(from)/mib, float64(to)/mib))
		}
		fmt.Fprintf(t, "%s\t%d\t%.1f\t%.1f\t%s\t\n", p.name, len(pids), float64(from)/mib, float64(to)/mib, verdict)
	}
	return errors.Join(errors.Join(wrong...), t.Flush())
}
