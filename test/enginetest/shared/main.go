// The program shared runs a command whose tests share one DynamoDB Local, instead of one for each package:
//
//	go run ./test/enginetest/shared go test ./...
package main

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"os/exec"

	"svcapi/local/engine"
	"svcapi/test/enginetest"
)

// The engine has one of these ports, which systems give to no outgoing connection (RFC 6335 calls them user ports).
const firstPort, ports = 20_000, 10_000

func main() {
	if err := run(os.Args[1:]); err != nil {
		if _, failed := errors.AsType[*exec.ExitError](err); !failed { // the command has reported its failure
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(1)
	}
}

func run(command []string) error {
	if len(command) == 0 {
		return errors.New("usage: shared COMMAND [ARGUMENT ...]")
	}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = os.Environ()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if os.Getenv(enginetest.Variable) != "" { // within another run
		return cmd.Run()
	}
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	// The same port in each run from a folder: a test that reads another address runs again, although nothing changed.
	port := firstPort + int(crc32.ChecksumIEEE([]byte(dir))%ports)
	e, err := engine.Start(context.Background(), engine.Options{Port: port})
	if err != nil {
		return err
	}
	defer e.Close()
	cmd.Env = append(cmd.Env, enginetest.Variable+"="+e.URL)
	return cmd.Run()
}
