package main

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// denied are the system calls that AWS Lambda denies with EPERM, each with the reports, and those that a function must
// not need in case Lambda denies them. The constants are the numbers of the architecture that this program is built
// for.
var denied = []uint32{
	// hashicorp/terraform-exec#172, chromedp/chromedp#720, vansante/go-ffprobe#23, ClickHouse/ClickHouse#53117
	unix.SYS_PRCTL,
	unix.SYS_FALLOCATE, // chromedp/chromedp#1074
	unix.SYS_UNSHARE,   // aws/containers-roadmap#2102
	// No report is known: calls of this kind are what sandboxes deny.
	unix.SYS_SETNS,
	unix.SYS_PTRACE,
	unix.SYS_PERSONALITY,
	unix.SYS_PERF_EVENT_OPEN,
	unix.SYS_PROCESS_VM_READV,
	unix.SYS_PROCESS_VM_WRITEV,
	unix.SYS_KCMP,
	unix.SYS_BPF,
}

// architectures are the kernel's names of the architectures, by Go's.
var architectures = map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}

// x32 marks the calls of another interface of the x86-64 kernel, which has its own numbers.
const x32 = 0x40000000

// Offsets in struct seccomp_data.
const (
	atNumber       = 0
	atArchitecture = 4
)

// filterProgram is the filter: EPERM for the denied calls, and ENOSYS for those of another interface of the same
// kernel. All other calls are allowed, also clone3: glibc takes ENOSYS for a kernel without clone3, but ends a program
// on EPERM.
func filterProgram(architecture uint32) []unix.SockFilter {
	const load, equal, atLeast, ret = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K,
		unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K, unix.BPF_RET | unix.BPF_K
	filter := []unix.SockFilter{
		{Code: load, K: atArchitecture},
		{Code: equal, K: architecture, Jt: 1},
		{Code: ret, K: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)},
		{Code: load, K: atNumber},
		{Code: atLeast, K: x32, Jf: 1},
		{Code: ret, K: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)},
	}
	for _, number := range denied {
		filter = append(filter,
			unix.SockFilter{Code: equal, K: number, Jf: 1},
			unix.SockFilter{Code: ret, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)})
	}
	return append(filter, unix.SockFilter{Code: ret, K: unix.SECCOMP_RET_ALLOW})
}

// installFilter binds this process and all processes that it starts to the filter, irrevocably.
func installFilter() error {
	architecture, ok := architectures[runtime.GOARCH]
	if !ok {
		return fmt.Errorf("no table of system calls for %s", runtime.GOARCH)
	}
	filter := filterProgram(architecture)
	code := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	// The kernel takes a filter from a thread that can gain no privileges; main has locked this one.
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC,
		uintptr(unsafe.Pointer(&code)))
	if errno != 0 {
		return errno
	}
	return nil
}
