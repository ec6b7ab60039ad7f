// Command layer unpacks the browser of the PDF function where that has not been done, and prints where it is.
package main

import (
	"context"
	"fmt"
	"os"

	"svcapi/local/chromium"
)

func main() {
	path, err := chromium.Path(context.Background(), func(step string) { fmt.Println(step) })
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(path)
}
