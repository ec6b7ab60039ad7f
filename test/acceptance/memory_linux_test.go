package acceptance

import (
	"fmt"
	"os"
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
		status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", id)) // a process that has ended has none
		_, value, _ := strings.Cut(string(status), "\nVmHWM:")
		kilobytes := 0
		_, _ = fmt.Sscan(value, &kilobytes)
		largest = max(largest, kilobytes<<10)
	}
	return largest
}
