package compare

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"svcapi/local/process"
)

// period is over what the kernel counts a quota of processor time, in microseconds. Lambda's is not documented.
const period = 100_000

// quota gives processes a part of the machine's processors: a control group where one can be made, else so many whole
// processors.
type quota struct {
	dir  string // of the control group; empty: none
	note string
	file func(cpus float64) (name, value string)
}

func newQuota() *quota {
	for _, hierarchy := range []struct {
		dir   string
		start map[string]string // what is written before there is a group
		file  func(cpus float64) (string, string)
	}{
		{"/sys/fs/cgroup", map[string]string{"cgroup.subtree_control": "+cpu"}, func(cpus float64) (string, string) {
			return "cpu.max", fmt.Sprintf("%d %d", int(cpus*period), period)
		}},
		{"/sys/fs/cgroup/cpu", nil, func(cpus float64) (string, string) {
			return "cpu.cfs_quota_us", strconv.Itoa(int(cpus * period))
		}},
	} {
		q := &quota{
			dir: filepath.Join(hierarchy.dir, "svc-bench-"+strconv.Itoa(os.Getpid())), file: hierarchy.file,
			note: "a control group's quota; Lambda's own may have another period",
		}
		for name, value := range hierarchy.start {
			_ = order(filepath.Join(hierarchy.dir, name), value) // it may be so already
		}
		if os.Mkdir(q.dir, 0o755) != nil {
			continue
		}
		if q.set(1, nil) == nil {
			return q
		}
		q.close() // not a folder of control groups, or not one with the processor's controller
	}
	return &quota{note: fmt.Sprintf("no control group can be made here: whole CPUs out of %d instead, at least one",
		runtime.NumCPU())}
}

// order writes to a file of the kernel's, and makes none.
func order(name, value string) error {
	file, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteString(value)
	return errors.Join(err, file.Close())
}

// set gives processes and all below them so many CPUs.
func (q *quota) set(cpus float64, pids []int) error {
	if q.dir == "" {
		return pin(int(math.Max(1, cpus)), pids)
	}
	name, value := q.file(cpus)
	if err := order(filepath.Join(q.dir, name), value); err != nil {
		return err
	}
	for _, pid := range below(pids) {
		// One that has ended meanwhile needs no quota.
		if err := order(filepath.Join(q.dir, "cgroup.procs"), strconv.Itoa(pid)); err != nil && unix.Kill(pid, 0) == nil {
			return err
		}
	}
	return nil
}

// close removes the control group, as soon as its last process has ended.
func (q *quota) close() {
	for range 500 {
		if q.dir == "" || os.Remove(q.dir) == nil {
			return
		}
		<-time.After(10 * time.Millisecond)
	}
}

// pin lets every thread of processes, and of those below them, run on the first CPUs only.
func pin(cpus int, pids []int) error {
	var set unix.CPUSet
	for cpu := range min(cpus, runtime.NumCPU()) {
		set.Set(cpu)
	}
	for _, pid := range below(pids) {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
		if err != nil {
			return err
		}
		for _, thread := range threads {
			id, _ := strconv.Atoi(filepath.Base(thread))
			if err := unix.SchedSetaffinity(id, &set); err != nil && err != unix.ESRCH {
				return err
			}
		}
	}
	return nil
}

// below are processes and all that they have started.
func below(pids []int) []int {
	found := slices.Clone(pids)
	for i := 0; i < len(found); i++ {
		found = append(found, process.Children(found[i])...)
	}
	return found
}
