package acceptance

import (
	"testing"

	"svcapi/shared/project"
)

const (
	barcodes = "/utilities/barcode/generate"
	qrcodes  = "/utilities/qrcode/generate"
)

// drawing connects the project to the built-in renderer.
func (p *tenant) drawing(t *testing.T, mode project.Mode) *tenant {
	t.Helper()
	svc[any](t, "", "integration", "set", p.id, "barcode", "builtin", "--env", "development", "--mode", string(mode))
	return p
}
