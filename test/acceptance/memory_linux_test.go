package acceptance

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

// checkMemory holds the function's processes, as they have grown by now, to 128 MB.
func checkMemory(t *testing.T) {
	t.Helper()
	largest := peak(fixture.stack.Processes("SmsFunction"))
	t.Logf("the largest process of the function has held %d MB", largest>>20)
	if largest == 0 || largest >= 128<<20 {
		t.Errorf("the largest process of the function has held %d bytes, want less than 128 MB", largest)
	}
}

// peak is the most memory that one of the processes has held, in bytes.
func peak(processes []int) (largest int) {
	for _, id := range processes {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", id))
		if err != nil {
			continue // it has ended meanwhile
		}
		for line := range strings.Lines(string(status)) {
			if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
				kilobytes, _ := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB"))) // as the kernel writes it
				largest = max(largest, kilobytes<<10)
			}
		}
	}
	return largest
}
