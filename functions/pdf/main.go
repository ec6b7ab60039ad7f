// The function pdf takes requests for PDFs and their credits. The function pdfrender renders the documents.
package main

import (
	"github.com/aws/aws-sdk-go-v2/aws"

	"svcapi/shared/api"
)

func main() {
	api.Main(
		func(c config) api.Config { return c.API },
		func(c config, s *api.Service, aws aws.Config) ([]api.Route, error) {
			r := newRenderer(aws, c, s.AfterResponse)
			return r.operations(c.ResultBytes), nil
		},
	)
}
