//go:build !linux

package browser

import "log/slog"

// Isolate returns no protections: only the processes on Lambda hold credentials to protect.
func Isolate() []slog.Attr { return nil }

func denied() []string { return nil }

func reap(int, string) int { return 0 }

// memory returns 0: the limit belongs to the platform, which is Linux.
func memory([]int) int64 { return 0 }

func groupMembers(int) []int { return nil }
