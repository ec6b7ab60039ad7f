package acceptance

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"svcapi/local/jail/spec"
	"svcapi/local/process"
	"svcapi/shared/project"
)

// TestJail checks each process of each function, the browser's among them, and that none runs between requests. No
// other test sends requests meanwhile: this one is not parallel.
func TestJail(t *testing.T) {
	local(t)
	for _, f := range fixture.stack.Template.Functions {
		if _, err := fixture.stack.Invoke(t.Context(), f.LogicalID, []byte(`{"httpMethod":"GET","path":"/"}`)); err != nil {
			t.Fatal(err)
		}
	}
	p := plan{}.make(t).printing(t, project.BYOK)
	printed(t, map[string]any{"html": "<p>frozen</p>"}, p.dev)
	for _, f := range fixture.stack.Template.Functions {
		ids := fixture.stack.Processes(f.LogicalID)
		if len(ids) == 0 {
			t.Errorf("%s has no process", f.Folder)
		}
		for _, id := range ids {
			awaitFrozen(t, id)
			checked := 0
			for _, member := range family(t, id) {
				if awaitFrozen(t, member) {
					checkJailed(t, f.Folder, member)
					checked++
				}
			}
			if want := map[bool]int{false: 1, true: 3}[f.Folder == "pdfrender"]; checked < want {
				t.Errorf("%s: %d processes, want at least %d", f.Folder, checked, want)
			}
		}
	}
}

// awaitFrozen waits until a process is stopped. It is false for one that has ended, be it that its parent was stopped
// before it knew.
func awaitFrozen(t *testing.T, id int) bool {
	t.Helper()
	var state string
	for range 500 {
		state = processStatus(t, id)["State"]
		switch {
		case strings.HasPrefix(state, "T"):
			return true
		case state == "" || strings.HasPrefix(state, "Z"):
			return false
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("process %d runs between requests: %s", id, state)
	return false
}

// family are a function's process and all others below its supervisor, which adopts orphans.
func family(t *testing.T, id int) []int {
	t.Helper()
	var supervisor int
	if _, err := fmt.Sscan(processStatus(t, id)["PPid"], &supervisor); err != nil {
		t.Fatal(err)
	}
	found := []int{supervisor}
	for i := 0; i < len(found); i++ {
		found = append(found, process.Children(found[i])...)
	}
	return found[1:]
}

// processStatus are the fields of /proc/<id>/status; none where the process has ended.
func processStatus(t *testing.T, id int) map[string]string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", id))
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ESRCH) {
		t.Fatal(err)
	}
	fields := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		fields[name] = strings.TrimSpace(value)
	}
	return fields
}

// checkJailed checks the parts of the jail that this machine permits. The stack reports the others.
func checkJailed(t *testing.T, function string, id int) {
	t.Helper()
	status := processStatus(t, id)
	about := fmt.Sprintf("%s: process %d (%s)", function, id, status["Name"])
	has := fixture.stack.Jail.Has
	if has(spec.Filter) && status["Seccomp"] != "2" {
		t.Errorf("%s: Seccomp %s", about, status["Seccomp"])
	}
	if has(spec.User) && strings.Contains("\t"+status["Uid"]+"\t"+status["Gid"]+"\t", "\t0\t") {
		t.Errorf("%s: user %s, group %s", about, status["Uid"], status["Gid"])
	}
	if has(spec.Limits) {
		limits, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", id))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(limits)) {
			files, processes := strings.HasPrefix(line, "Max open files"), strings.HasPrefix(line, "Max processes") && has(spec.User)
			if value := strings.Fields(line); (files || processes) && value[len(value)-2] != "1024" {
				t.Errorf("%s: %s", about, line)
			}
		}
	}
	if !has(spec.Namespaces) {
		return
	}
	mounts, err := os.ReadFile(fmt.Sprintf("/proc/%d/mounts", id))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		fields := strings.Fields(line) // source, place, type, options
		if place := fields[1]; !strings.HasPrefix(fields[3], "ro") && place != "/tmp" && place != "/proc" || strings.HasPrefix(place, "/dev/shm") {
			t.Errorf("%s: mount %s", about, line)
		}
	}
	if _, err := os.Stat(fmt.Sprintf("/proc/%d/root/dev/shm", id)); err == nil {
		t.Errorf("%s has a /dev/shm", about)
	}
}
