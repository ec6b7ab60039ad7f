package stack

import (
	"fmt"
	"syscall"
)

// closedPort gives a URL where connections are refused as long as the stack runs: its port is taken, and nobody listens.
func (s *Stack) closedPort() (string, error) {
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		return "", fmt.Errorf("closed port: %w", err)
	}
	s.onClose(func() error { return syscall.Close(socket) })
	syscall.CloseOnExec(socket)
	if err := syscall.Bind(socket, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return "", fmt.Errorf("closed port: %w", err)
	}
	bound, err := syscall.Getsockname(socket)
	if err != nil {
		return "", fmt.Errorf("closed port: %w", err)
	}
	return "http://" + address(bound.(*syscall.SockaddrInet4).Port), nil
}
