//go:build !linux

package process

import "syscall"

func endWithParent(*syscall.SysProcAttr) {}
