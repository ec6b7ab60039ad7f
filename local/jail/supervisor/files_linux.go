package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

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
	err := unix.Chdir(root)
	if err == nil {
		err = unix.PivotRoot(".", ".")
	}
	if err == nil {
		err = unix.Unmount(".", unix.MNT_DETACH)
	}
	if err == nil {
		err = unix.Chdir("/")
	}
	if err != nil {
		return fmt.Errorf("change the root: %w", err)
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
