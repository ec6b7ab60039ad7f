// The function pdf renders HTML to PDF.
package main

import (
	"github.com/aws/aws-sdk-go-v2/aws"

	"svcapi/functions/pdf/browser"
	"svcapi/shared/api"
)

func main() {
	// Before anything else, because no process started later may read the memory of this one.
	protections := browser.Isolate()
	api.Main(
		func(c config) api.Config { return c.API },
		func(c config, s *api.Service, _ aws.Config) ([]api.Route, error) {
			r, err := newRenderer(c, protections, s.AfterResponse)
			if err != nil {
				return nil, err
			}
			return []api.Route{r.generate()}, nil
		},
	)
}
