package main

import (
	"context"
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

// A process grows when the median of its size in the last quarter of a run is above that of the second quarter by both of
// these. The first quarter is for warming up. A Go heap takes 4 MiB before the first collection.
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
	var list []part
	for _, f := range s.stack.Template.Functions {
		pids := func() []int { return s.stack.Processes(f.LogicalID) }
		list = append(list, part{name: f.Folder + " function", judged: true, pids: pids})
		if f.Folder == "pdfrender" {
			list = append(list, part{name: "pdfrender function with its browser", judged: true, tree: true, pids: pids})
		}
	}
	return append(list,
		part{name: "gateway, function host, secrets, sandbox", judged: true, pids: func() []int { return []int{self} }},
		part{name: "hello function", pids: s.baseline.Processes},
		part{name: "DynamoDB Local", pids: children("java")},
		part{name: "k6", pids: children("k6")},
	)
}

// watchMemory measures every part at each tick of a clock, until the returned function is called. That function prints
// the sizes and returns what grows.
func watchMemory(ctx context.Context, out io.Writer, parts []part, every time.Duration, tick func()) (end func() []string) {
	if runtime.GOOS != "linux" {
		return func() []string {
			fmt.Fprintln(out, "\nMemory is not measured: the size of processes is read from Linux's /proc.")
			return nil
		}
	}
	ctx, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	began := time.Now()
	go func() {
		defer close(done)
		ticks := time.NewTicker(every)
		defer ticks.Stop()
		for ctx.Err() == nil {
			for i := range parts {
				parts[i].measure()
			}
			tick()
			select {
			case <-ctx.Done():
			case <-ticks.C:
			}
		}
	}()
	return func() []string {
		stop()
		<-done
		return reportMemory(out, parts, time.Since(began))
	}
}

func (p *part) measure() {
	sizes := map[int]int64{}
	for _, pid := range p.pids() {
		if bytes, err := size(pid, p.tree); err == nil { // else the process has ended meanwhile
			sizes[pid] = bytes
		}
	}
	p.sizes = append(p.sizes, sizes)
}

// size returns the memory that a process has in use, in bytes. The size of a tree is the sum of proportional shares.
func size(pid int, tree bool) (int64, error) {
	if !tree {
		return field(pid, "status", "VmRSS:")
	}
	sum, err := field(pid, "smaps_rollup", "Pss:")
	for _, child := range process.Children(pid) {
		if more, err := size(child, true); err == nil {
			sum += more
		}
	}
	return sum, err
}

// field reads a line of kilobytes from a file of a process.
func field(pid int, file, name string) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
	if err != nil {
		return 0, err
	}
	_, rest, found := strings.Cut("\n"+string(text), "\n"+name)
	value, _, _ := strings.Cut(rest, " kB")
	if !found {
		return 0, fmt.Errorf("process %d has no %s", pid, name)
	}
	kilobytes, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
	return kilobytes << 10, err
}

// growth is the change of a process from the second quarter of a run to the last.
type growth struct {
	from, to int64   // medians
	apart    float64 // the middles of the two quarters, as a share of the run
}

func (g growth) flat() bool { return float64(g.to-g.from) <= max(flatShare*float64(g.from), flatBytes) }

// perHour returns the growth in MiB an hour.
func (g growth) perHour(run time.Duration) float64 {
	if g.apart == 0 {
		return 0
	}
	return mebibytes(g.to-g.from) / (g.apart * run.Hours())
}

// grown returns the growth of one process, and false for a process that did not run from the second quarter to the end.
func (p *part) grown(pid int) (growth, bool) {
	n := len(p.sizes)
	quarter := n / 4
	median := func(from, to int) int64 {
		var list []int64
		for _, sizes := range p.sizes[from:to] {
			if bytes, ok := sizes[pid]; ok {
				list = append(list, bytes)
			}
		}
		slices.Sort(list)
		if len(list) == 0 {
			return 0
		}
		return (list[(len(list)-1)/2] + list[len(list)/2]) / 2
	}
	g := growth{median(quarter, 2*quarter), median(n-quarter, n), float64(n-2*quarter) / max(float64(n-1), 1)}
	early := slices.IndexFunc(p.sizes, func(sizes map[int]int64) bool { return sizes[pid] > 0 }) <= quarter+n/20
	return g, early && g.from > 0 && g.to > 0
}

// worst returns the growth of the process that grew most, how many processes there were, and how many of them came or
// went during the run.
func (p *part) worst() (worst growth, seen, late int) {
	pids := map[int]bool{}
	for _, sizes := range p.sizes {
		for pid := range sizes {
			pids[pid] = true
		}
	}
	for pid := range pids {
		g, throughout := p.grown(pid)
		switch {
		case !throughout:
			late++
		case worst.from == 0 || g.to-g.from > worst.to-worst.from:
			worst = g
		}
	}
	return worst, len(pids), late
}

// reportMemory prints the table and returns what grows.
func reportMemory(out io.Writer, parts []part, run time.Duration) (wrong []string) {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "\nMiB over all processes\thow many\tstart\t25 %%\t50 %%\t75 %%\tend\tlargest growth of one\tper hour\t\t\n")
	for _, p := range parts {
		worst, seen, late := p.worst()
		fmt.Fprintf(t, "%s\t%d\t", p.name, seen)
		last := len(p.sizes) - 1
		for quarter := range 5 {
			total, edge := int64(0), last/20 // the processes start and end in the run's first and last 5 %
			for _, bytes := range p.sizes[min(max(quarter*last/4, edge), last-edge)] {
				total += bytes
			}
			fmt.Fprintf(t, "%.1f\t", mebibytes(total))
		}
		verdict := "not the product"
		switch {
		case !p.judged:
		case worst.from == 0:
			verdict = "NOT THERE"
			wrong = append(wrong, p.name+": no process ran from the second quarter to the end")
		case worst.flat():
			verdict = "flat"
		default:
			verdict = "GROWS"
			wrong = append(wrong, fmt.Sprintf("%s: one process grew from %.1f to %.1f MiB", p.name, mebibytes(worst.from), mebibytes(worst.to)))
		}
		if late > 0 {
			verdict += fmt.Sprintf(", %d came or went", late)
		}
		fmt.Fprintf(t, "%.1f → %.1f\t%+.1f\t%s\t\n", mebibytes(worst.from), mebibytes(worst.to), worst.perHour(run), verdict)
	}
	fmt.Fprintf(t, "Flat: a process's median of the last quarter is at most %.0f %% or %d MiB above that of the second.\n", 100*flatShare, flatBytes/mib)
	if err := t.Flush(); err != nil {
		wrong = append(wrong, err.Error())
	}
	return wrong
}

func mebibytes(n int64) float64 { return float64(n) / mib }
