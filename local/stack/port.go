package stack

import (
	"errors"
	"fmt"
	"syscall"
)

// ClosedPort reserves a port and returns a URL that refuses connections until the caller calls release.
func ClosedPort() (url string, release func() error, err error) {
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		return "", nil, fmt.Errorf("closed port: %w", err)
	}
	release = func() error { return syscall.Close(socket) }
	syscall.CloseOnExec(socket)
	err = syscall.Bind(socket, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})
	bound, named := syscall.Getsockname(socket)
	if err = errors.Join(err, named); err != nil {
		return "", nil, fmt.Errorf("closed port: %w", errors.Join(err, release()))
	}
	return "http://" + address(bound.(*syscall.SockaddrInet4).Port), release, nil
}
