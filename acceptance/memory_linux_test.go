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
	largest := 0
	for _, id := range sut.stack.Processes("SmsFunction") {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", id))
		if err != nil {
			continue // it has ended meanwhile
		}
		for line := range strings.Lines(string(status)) {
			if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
				kilobytes, err := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")))
				if err != nil {
					t.Fatal(err)
				}
				largest = max(largest, kilobytes)
			}
		}
	}
	t.Logf("the largest process of the function has held %d MB", largest>>10)
	if largest == 0 || largest >= 128<<10 {
		t.Errorf("the largest process of the function has held %d kB, want less than 128 MB", largest)
	}
}
