package browser

import "golang.org/x/sys/unix"

// unseclude opens this process again.
func unseclude() error { return unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0) }
