package process

import (
	"os"
	"strconv"
	"strings"
	"syscall"
)

func endWithParent(a *syscall.SysProcAttr) {
	if a.Pdeathsig == 0 {
		a.Pdeathsig = syscall.SIGKILL
	}
}

// Children are the processes that a process has started or adopted.
func Children(pid int) (children []int) {
	tasks := "/proc/" + strconv.Itoa(pid) + "/task/"
	threads, _ := os.ReadDir(tasks) // a process that has ended has no children
	for _, thread := range threads {
		list, _ := os.ReadFile(tasks + thread.Name() + "/children") // nor has a thread
		for id := range strings.FieldsSeq(string(list)) {
			if child, err := strconv.Atoi(id); err == nil {
				children = append(children, child)
			}
		}
	}
	return children
}
