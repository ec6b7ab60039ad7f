package acceptance

import (
	"strconv"
	"strings"
	"testing"
)

// checkMemory checks that no process of the function has needed 128 MB.
func checkMemory(t *testing.T) {
	t.Helper()
	largest := peak(t, fixture.stack.Processes("SmsFunction"))
	t.Logf("the largest process of the function has held %d MB", largest>>20)
	if largest == 0 || largest >= 128<<20 {
		t.Errorf("the largest process of the function has held %d bytes, want less than 128 MB", largest)
	}
}

// peak returns the most memory that one of the processes has needed, in bytes.
func peak(t *testing.T, processes []int) (largest int) {
	t.Helper()
	for _, id := range processes {
		kilobytes, _ := strconv.Atoi(strings.TrimSuffix(processStatus(t, id)["VmHWM"], " kB")) // 0: the process has ended
		largest = max(largest, kilobytes<<10)
	}
	return largest
}
