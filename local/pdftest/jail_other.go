//go:build !linux

package pdftest

import "errors"

const (
	canJail   = false
	jailStage = "PDFTEST_JAIL"
)

var errNoJail = errors.New("there is no jail on this system")

func jail(string) (int, error) { return 0, errNoJail }

func enterJail() (int, error) { return 0, errNoJail }
