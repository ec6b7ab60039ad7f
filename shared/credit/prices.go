package credit

import "fmt"

// Prices is the price list in credits. One US dollar is 1,000,000 credits. The list applies to Managed integrations;
// Manual (BYOK) integrations, currency and balance are free (docs/decisions.md#prices).
type Prices struct {
	SMS               int64 `env:"PRICE_SMS" envDefault:"10000"` // a unit
	BurnerEmailShield int64 `env:"PRICE_BURNER_EMAIL_SHIELD" envDefault:"100"`
	VPNShield         int64 `env:"PRICE_VPN_SHIELD" envDefault:"1000"`
	Location          int64 `env:"PRICE_LOCATION" envDefault:"500"`
	Barcode           int64 `env:"PRICE_BARCODE" envDefault:"100"`
	QRCode            int64 `env:"PRICE_QRCODE" envDefault:"100"`
	PDF               int64 `env:"PRICE_PDF" envDefault:"2000"`
}

// The operations that cost credits, as the ledger names them.
const (
	SMS               = "sms"
	BurnerEmailShield = "burner_email_shield"
	VPNShield         = "vpn_shield"
	Location          = "location"
	Barcode           = "barcode"
	QRCode            = "qrcode"
	PDF               = "pdf"
)

// list returns every price by the name of its operation.
func (p Prices) list() map[string]int64 {
	return map[string]int64{
		SMS:               p.SMS,
		BurnerEmailShield: p.BurnerEmailShield,
		VPNShield:         p.VPNShield,
		Location:          p.Location,
		Barcode:           p.Barcode,
		QRCode:            p.QRCode,
		PDF:               p.PDF,
	}
}

// Of returns the price of one call, for SMS of one unit; 0 for an operation that is not on the list.
func (p Prices) Of(operation string) int64 { return p.list()[operation] }

// Validate refuses a price below 0, and a price with which a message of many units would overflow.
func (p Prices) Validate() error {
	const most = 1_000_000_000_000 // a million dollars
	for operation, price := range p.list() {
		if price < 0 || price > most {
			return fmt.Errorf("credit: the price of %s is %d, not within 0 and %d", operation, price, int64(most))
		}
	}
	return nil
}
