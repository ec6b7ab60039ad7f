// The function pdf takes requests for PDFs and their credits. The function pdfrender renders the documents.
package main

import (
	"github.com/aws/aws-sdk-go-v2/aws"

	"svcapi/shared/request"
)

func main() {
	request.Main(
		func(c config) request.Config { return c.API },
		func(c config, s *request.Service, aws aws.Config) ([]request.Route, error) {
			r := newRenderer(aws, c, s.AfterResponse)
			return r.operations(c.ResultBytes), nil
		},
	)
}
