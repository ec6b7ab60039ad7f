package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"svcapi/local/jail/spec"
)

// root is where the new file system is built: every system has the folder, and the jail takes no file from it.
const root = "/sys"

// system are the folders of this machine that a function can read; other folders, such as home folders, are missing.
var system = []string{"/bin", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/nix", "/opt", "/sbin", "/usr"}

// devices are all that /dev holds. There is no /dev/shm, as on AWS Lambda.
var devices = []string{"/dev/full", "/dev/null", "/dev/random", "/dev/urandom", "/dev/zero"}

var links = map[string]string{
	"/dev/fd": "/proc/self/fd", "/dev/stdin": "/proc/self/fd/0", "/dev/stdout": "/proc/self/fd/1",
	"/dev/stderr": "/proc/self/fd/2",
}

// fileSystem gives this mount namespace a root in which only /tmp can be written.
func fileSystem(setup spec.Setup) error {
	for _, m := range []struct {
		target, kind, options string
		flags                 uintptr
	}{
		{"/", "", "", unix.MS_REC | unix.MS_PRIVATE}, // these mounts do not reach the machine's own mounts
		{root, "tmpfs", "mode=755,size=1m", unix.MS_NOSUID | unix.MS_NODEV},
		{root + "/proc", "proc", "", unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC},
		{root + "/tmp", "tmpfs", fmt.Sprintf("mode=700,size=%d,uid=%d", setup.Scratch, setup.ID),
			unix.MS_NOSUID | unix.MS_NODEV},
	} {
		if m.target != "/" {
			if err := os.MkdirAll(m.target, 0o755); err != nil {
				return err
			}
		}
		if err := unix.Mount(m.kind, m.target, m.kind, m.flags, m.options); err != nil {
			return fmt.Errorf("mount %s: %w", m.target, err)
		}
	}
	if err := fill(setup); err != nil {
		return err
	}
	if err := unix.MountSetattr(-1, root, unix.AT_RECURSIVE,
		&unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID}); err != nil {
		return fmt.Errorf("make the file system read-only: %w", err)
	}
	for _, writable := range []string{root + "/proc", root + "/tmp"} {
		if err := unix.MountSetattr(-1, writable, 0, &unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY}); err != nil {
			return fmt.Errorf("make %s writable: %w", writable, err)
		}
	}
	// The new root over the old one, which then is taken away from below.
	for _, step := range []func() error{
		func() error { return unix.Chdir(root) },
		func() error { return unix.PivotRoot(".", ".") },
		func() error { return unix.Unmount(".", unix.MNT_DETACH) },
		func() error { return unix.Chdir("/") },
	} {
		if err := step(); err != nil {
			return fmt.Errorf("change the root: %w", err)
		}
	}
	// The function does not get the capabilities that a user namespace has given the supervisor.
	return unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
}

// fill puts the files that the function can read into the new root.
func fill(setup spec.Setup) error {
	for _, path := range append(system, devices...) {
		if err := show(path, path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	for path, target := range links {
		if err := os.Symlink(target, root+path); err != nil {
			return err
		}
	}
	// LAMBDA_RUNTIME_DIR is there, and empty.
	if err := os.MkdirAll(root+"/var/runtime", 0o755); err != nil {
		return err
	}
	readable := setup.Readable
	// The addresses of name servers may be where a link leads to.
	if resolver, err := filepath.EvalSymlinks("/etc/resolv.conf"); err == nil {
		readable = append(readable, resolver)
	}
	for _, path := range readable {
		if _, err := os.Stat(root + path); err == nil {
			continue // the path is in one of the system's folders
		}
		if err := show(path, path); err != nil {
			return err
		}
	}
	return show(setup.Binary, spec.TaskRoot+"/bootstrap")
}

// show makes a file, a folder or a link of this machine appear at a path below the new root.
func show(path, at string) error {
	at = root + at
	about, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return err
	}
	switch {
	case about.Mode()&fs.ModeSymlink != 0:
		target, err := os.Readlink(path)
		if err != nil {
			return err
		}
		return os.Symlink(target, at)
	case about.IsDir():
		err = os.MkdirAll(at, 0o755)
	default:
		err = os.WriteFile(at, nil, 0o644)
	}
	if err != nil {
		return err
	}
	if err := unix.Mount(path, at, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("show %s: %w", path, err)
	}
	return nil
}

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
