// Command local runs the API on this machine, without an AWS account and without containers:
//
//	go run ./local run       the whole stack, until Ctrl-C
//	go run ./local invoke    one event through one compiled function
package main

import (
	"fmt"
	"os"
)

func main() {
	commands := map[string]func(args []string) error{"run": run, "invoke": invoke}
	var command func(args []string) error
	if len(os.Args) > 1 {
		command = commands[os.Args[1]]
	}
	if command == nil {
		fmt.Fprintln(os.Stderr, "usage: local run [FOLDER] | local invoke FUNCTION EVENT")
		os.Exit(2)
	}
	if err := command(os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
