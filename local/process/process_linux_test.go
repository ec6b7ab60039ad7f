package process_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"svcapi/local/process"
	"svcapi/test/must"
)

// TestMain lets the test binary play a parent that starts a child and is then killed.
func TestMain(m *testing.M) {
	if os.Getenv("PROCESS_TEST_PARENT") == "" {
		os.Exit(m.Run())
	}
	child, err := process.Start(exec.Command("sleep", "600"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(child.ID)
	<-child.Done()
}

func alive(pid int) bool { return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

// gone waits a while for a process to be gone. A zombie whose parent is slow to notice counts as gone.
func gone(pid int) bool {
	for range 500 {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil || strings.Contains(string(status), ") Z ") {
			return true
		}
		time.Sleep(10 * time.Millisecond)
	}
	return false
}

// TestParentDeath checks that a child ends when its parent is killed.
func TestParentDeath(t *testing.T) {
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), "PROCESS_TEST_PARENT=1")
	out := must.Get(parent.StdoutPipe()).Or(t)
	must.Succeed(t, parent.Start())
	line := must.Get(bufio.NewReader(out).ReadString('\n')).Or(t)
	child := must.Get(strconv.Atoi(strings.TrimSpace(line))).Or(t)
	if !alive(child) {
		t.Fatal("the child did not start")
	}
	must.Succeed(t, parent.Process.Kill())
	if err := parent.Wait(); err == nil {
		t.Error("the parent ended by itself")
	}
	if !gone(child) {
		t.Errorf("child %d outlived its parent", child)
	}
}

// TestKill checks that a child ends with all that it started, stopped or not.
func TestKill(t *testing.T) {
	cmd := exec.Command("sh", "-c", "sleep 600 & echo $!; wait")
	read, write, err := os.Pipe()
	must.Succeed(t, err)
	defer read.Close()
	cmd.Stdout = write
	child := must.Get(process.Start(cmd)).Or(t)
	write.Close()
	line := must.Get(bufio.NewReader(read).ReadString('\n')).Or(t)
	grandchild := must.Get(strconv.Atoi(strings.TrimSpace(line))).Or(t)
	child.Signal(syscall.SIGSTOP)
	child.Kill()
	child.Kill() // once more does nothing
	if !gone(child.ID) || !gone(grandchild) {
		t.Error("a process is left")
	}
	if child.Err() == nil {
		t.Error("a killed child ended well")
	}
}

// TestStart checks that a missing program is an error.
func TestStart(t *testing.T) {
	if _, err := process.Start(exec.Command("/nonexistent")); err == nil {
		t.Error("no error")
	}
}
