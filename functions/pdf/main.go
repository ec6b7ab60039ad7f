// The function pdf takes requests for PDFs and their credits. The function pdfrender renders the documents.
package main

import (
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"

	"svcapi/shared/request"
	"svcapi/shared/settings"
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

// The values of PDF_ISOLATION (docs/decisions/pdf.md#pdf-isolation).
const (
	sharedIsolation  = "shared"
	projectIsolation = "project"
)

// config is the configuration that the function reads from the environment.
type config struct {
	API         request.Config
	Renderer    string `env:"PDF_RENDERER,required"`             // the function pdfrender, with its alias
	Isolation   string `env:"PDF_ISOLATION" envDefault:"shared"` // project: pdfrender takes a tenant ID, and else none
	ResultBytes int    `env:"PDF_RESULT_BYTES" envDefault:"33554432"`
}

// Validate returns the problems of the configuration.
func (c config) Validate() error {
	var isolation error
	if c.Isolation != sharedIsolation && c.Isolation != projectIsolation {
		isolation = fmt.Errorf("PDF_ISOLATION is %q, and has to be %s or %s", c.Isolation, sharedIsolation, projectIsolation)
	}
	return errors.Join(c.API.Validate(), isolation,
		settings.InRange("PDF_RESULT_BYTES", c.ResultBytes, maxBuffered, mostStreamed))
}
