package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"text/tabwriter"
	"time"
)

const mib = 1 << 20

// errNoMemory: this system does not tell how large another process is.
var errNoMemory = errors.New("the size of processes is read from Linux's /proc")

// A process is flat when the median of its size in the last quarter of a run is above that of the second quarter by
// both of these. The first quarter is for warming up; 4 MiB are what a Go heap takes before it is collected at all.
const (
	flatShare = 0.10
	flatBytes = 4 * mib
)

// part is a part of the system whose memory is watched: the processes of one function, or another program.
type part struct {
	name string
	// judged is false for what stands in for AWS and vendors and keeps all that it is given.
	judged bool
	pids   func() []int
	// tree counts the descendants in, each page that several of them share once.
	tree bool
}

// sample is the size of a process at a moment.
type sample struct {
	at    time.Time
	bytes int64
}

// watch samples the parts until its context ends.
type watch struct {
	parts   []part
	began   time.Time
	series  []map[int][]sample // of each part, by process ID
	problem error
	done    chan struct{}
}

// watchMemory samples every part at each tick of a clock.
func watchMemory(ctx context.Context, parts []part, every time.Duration, tick func()) *watch {
	w := &watch{parts: parts, began: time.Now(), done: make(chan struct{})}
	for range parts {
		w.series = append(w.series, map[int][]sample{})
	}
	go func() {
		defer close(w.done)
		ticks := time.NewTicker(every)
		defer ticks.Stop()
		for {
			w.sample()
			tick()
			select {
			case <-ctx.Done():
				return
			case <-ticks.C:
			}
		}
	}()
	return w
}

func (w *watch) sample() {
	children, err := processTree()
	if err != nil {
		w.problem = err
		return
	}
	for i, p := range w.parts {
		for _, pid := range p.pids() {
			bytes, err := size(pid, p.tree, children)
			if err != nil {
				continue // it has ended meanwhile
			}
			w.series[i][pid] = append(w.series[i][pid], sample{time.Now(), bytes})
		}
	}
}

// growth is how a process grew from the second quarter of a time to the last.
type growth struct {
	from, to int64 // medians
	perHour  float64
}

// grown is false for a process that was not there from the second quarter to the end.
func grown(series []sample, began, ended time.Time) (growth, bool) {
	at := func(quarter int) time.Time { return began.Add(ended.Sub(began) * time.Duration(quarter) / 4) }
	within := func(from, to time.Time) (list []int64) {
		for _, s := range series {
			if !s.at.Before(from) && s.at.Before(to) {
				list = append(list, s.bytes)
			}
		}
		slices.Sort(list)
		return list
	}
	second, last := within(at(1), at(2)), within(at(3), ended.Add(time.Nanosecond))
	if len(second) == 0 || len(last) == 0 || series[0].at.After(at(1).Add(ended.Sub(began)/20)) {
		return growth{}, false
	}
	return growth{second[len(second)/2], last[len(last)/2], slope(series, at(1))}, true
}

// slope is the least-squares slope since a time, in bytes an hour.
func slope(series []sample, since time.Time) float64 {
	var n, sx, sy, sxx, sxy float64
	for _, s := range series {
		if s.at.Before(since) {
			continue
		}
		x, y := s.at.Sub(since).Hours(), float64(s.bytes)
		n, sx, sy, sxx, sxy = n+1, sx+x, sy+y, sxx+x*x, sxy+x*y
	}
	if d := n*sxx - sx*sx; d > 0 {
		return (n*sxy - sx*sy) / d
	}
	return 0
}

func (g growth) flat() bool {
	return float64(g.to-g.from) <= max(flatShare*float64(g.from), flatBytes)
}

// report prints the table and returns what is not flat.
func (w *watch) report(s *system) (wrong []string) {
	<-w.done
	if w.problem != nil {
		fmt.Fprintf(s.out, "\nMemory is not measured: %v.\n", w.problem)
		if errors.Is(w.problem, errNoMemory) {
			return nil
		}
		return []string{w.problem.Error()}
	}
	ended := w.began
	for _, processes := range w.series {
		for _, series := range processes {
			if last := series[len(series)-1].at; last.After(ended) {
				ended = last
			}
		}
	}
	t := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "\nMiB over all processes\thow many\tstart\t25 %%\t50 %%\t75 %%\tend\tlargest growth of one\tper hour\t\t\n")
	for i, p := range w.parts {
		fmt.Fprintf(t, "%s\t%d\t", p.name, len(w.series[i]))
		for quarter := range 5 {
			fmt.Fprintf(t, "%.1f\t", mebibytes(w.total(i, w.began.Add(ended.Sub(w.began)*time.Duration(quarter)/4))))
		}
		worst, late := w.worst(i, ended)
		fault, verdict := "", "not the product"
		switch {
		case worst == nil && p.judged:
			fault, verdict = "no process ran from the second quarter to the end", "NOT THERE"
		case p.judged && worst.flat():
			verdict = "flat"
		case p.judged:
			fault, verdict = fmt.Sprintf("one process grew from %.1f to %.1f MiB", mebibytes(worst.from), mebibytes(worst.to)), "GROWS"
		}
		if fault != "" {
			wrong = append(wrong, p.name+": "+fault)
		}
		if late > 0 {
			verdict += fmt.Sprintf(", %d came or went", late)
		}
		if worst == nil {
			worst = &growth{}
		}
		fmt.Fprintf(t, "%.1f → %.1f\t%+.1f\t%s\t\n", mebibytes(worst.from), mebibytes(worst.to), worst.perHour/mib, verdict)
	}
	if err := t.Flush(); err != nil {
		return append(wrong, err.Error())
	}
	fmt.Fprintf(s.out, "Flat: a process's median of the last quarter is at most %.0f %% or %d MiB above that of the second.\n", 100*flatShare, flatBytes/mib)
	return wrong
}

// worst is the growth of the process of a part that grew most; nil where none ran throughout. late counts those that did
// not.
func (w *watch) worst(i int, ended time.Time) (worst *growth, late int) {
	for _, series := range w.series[i] {
		g, throughout := grown(series, w.began, ended)
		switch {
		case !throughout:
			late++
		case worst == nil || g.to-g.from > worst.to-worst.from:
			worst = &g
		}
	}
	return worst, late
}

// total is the size of a part's processes at a moment: of each, the sample next to it.
func (w *watch) total(i int, at time.Time) (sum int64) {
	for _, series := range w.series[i] {
		if series[0].at.Sub(at) > 10*time.Second || at.Sub(series[len(series)-1].at) > 10*time.Second {
			continue
		}
		next := slices.MinFunc(series, func(a, b sample) int { return int(a.at.Sub(at).Abs() - b.at.Sub(at).Abs()) })
		sum += next.bytes
	}
	return sum
}

func mebibytes(n int64) float64 { return float64(n) / mib }

// parts are what a soak watches.
func (s *system) parts(k6 func() int) []part {
	self := os.Getpid()
	var list []part
	for _, f := range s.stack.Template.Functions {
		pids := func() []int { return s.stack.Processes(f.LogicalID) }
		list = append(list, part{name: f.Folder + " function", judged: true, pids: pids})
		if f.Folder == "pdf" {
			list = append(list, part{name: "pdf function with its browser", judged: true, tree: true, pids: pids})
		}
	}
	list = append(list,
		part{name: "gateway, function host, secrets, sandbox", judged: true, pids: func() []int { return []int{self} }},
		part{name: "hello function", pids: s.anchor.Processes},
		part{name: "DynamoDB Local", pids: func() []int { return childrenNamed(self, "java") }},
		part{name: "k6", pids: func() []int { return []int{k6()} }},
	)
	return list
}
