// Command local runs the API on this machine, without an AWS account and without containers:
//
//	go run ./local run       the whole stack, until Ctrl-C
//	go run ./local invoke    one event through one compiled function
//	go run ./local layer     the browser of the PDF function, unpacked
package main

import (
	"context"
	"fmt"
	"os"

	"svcapi/local/chromium"
)

func main() {
	commands := map[string]func(args []string) error{"run": run, "invoke": invoke, "layer": layer}
	var command func(args []string) error
	if len(os.Args) > 1 {
		command = commands[os.Args[1]]
	}
	if command == nil {
		fmt.Fprintln(os.Stderr, "usage: local run [FOLDER] | local invoke FUNCTION EVENT | local layer")
		os.Exit(2)
	}
	if err := command(os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// layer unpacks the browser where that has not been done, and prints where it is.
func layer([]string) error {
	path, err := chromium.Path(context.Background(), func(step string) { fmt.Println(step) })
	if err != nil {
		return err
	}
	fmt.Println(path)
	return nil
}
