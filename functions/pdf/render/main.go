// The function pdfrender renders HTML to PDF for the function pdf. Its role may write its own log and nothing else,
// because the documents are those of strangers (docs/decisions/pdf.md#pdf-renderer).
package main

import (
	"fmt"
	"os"

	"svcapi/functions/pdf/render/browser"
	"svcapi/shared/afterresponse"
	"svcapi/shared/settings"
	"svcapi/shared/telemetry"
)

func main() {
	// Before anything else, because no process started later may read the memory of this one.
	protections := browser.Isolate()
	registration := afterresponse.Register()
	cfg, err := settings.Read[config]()
	if err != nil {
		telemetry.Exit(fmt.Errorf("configuration: %w", err))
	}
	after := afterresponse.New(telemetry.New(os.Stdout, cfg.Log))
	r, err := newRenderer(cfg, protections, after.Do)
	if err != nil {
		telemetry.Exit(err)
	}
	afterresponse.Start(after, registration, r.handle)
}
