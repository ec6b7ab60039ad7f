package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// processTree gives the children of every process of this machine.
func processTree() (map[int][]int, error) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	children := map[int][]int{}
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended meanwhile
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		// The name, in parentheses, may hold anything.
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		if len(fields) < 2 {
			continue
		}
		if parent, err := strconv.Atoi(fields[1]); err == nil {
			children[parent] = append(children[parent], pid)
		}
	}
	return children, nil
}

// size is the memory that a process has in use, in bytes; of a tree the sum over it, shared pages in shares.
func size(pid int, tree bool, children map[int][]int) (int64, error) {
	if !tree {
		return field(pid, "status", "VmRSS:")
	}
	sum, err := field(pid, "smaps_rollup", "Pss:")
	if err != nil {
		return 0, err
	}
	for _, child := range children[pid] {
		more, err := size(child, true, children)
		if err != nil {
			continue // it has ended meanwhile
		}
		sum += more
	}
	return sum, nil
}

// field reads a line of kilobytes from a file of a process.
func field(pid int, file, name string) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, name); ok {
			kilobytes, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			return kilobytes << 10, err
		}
	}
	return 0, fmt.Errorf("process %d has no %s", pid, name)
}

// childrenNamed are the children of a process that run a program.
func childrenNamed(parent int, program string) (list []int) {
	children, err := processTree()
	if err != nil {
		return nil
	}
	for _, pid := range children[parent] {
		if name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); err == nil && strings.TrimSpace(string(name)) == program {
			list = append(list, pid)
		}
	}
	return list
}
