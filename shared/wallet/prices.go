package wallet

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

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

// Price is one row of the price list.
type Price struct {
	Name      string // as reservations and ledger entries name it
	Parameter string // of template.yaml; the parameter holds the credits
	Unit      string // a call costs the price of each of its units; empty: the price is for the call
}

// PriceList returns the price list in the order in which people read it. Other operations are free.
func PriceList() []Price {
	return []Price{
		{SMS, "PriceSms", "unit"},
		{BurnerEmailShield, "PriceBurnerEmailShield", ""},
		{VPNShield, "PriceVpnShield", ""},
		{Location, "PriceLocation", ""},
		{Barcode, "PriceBarcode", ""},
		{QRCode, "PriceQrcode", ""},
		{PDF, "PricePdf", ""},
	}
}

// MaxPrice is the largest price, a million dollars.
const MaxPrice = 1_000_000_000_000

// Variable returns the name of the environment variable that holds the price for a function: PRICE_SMS.
func (p Price) Variable() string { return "PRICE_" + strings.ToUpper(p.Name) }

// FromEnvironment returns the text of a price in the function's environment, and whether there is one.
func FromEnvironment(p Price) (text string, ok bool) { return os.LookupEnv(p.Variable()) }

// Prices are the credits of one call, for SMS of one unit, by operation; 0 for an operation that is not on the list.
type Prices map[string]int64

// ReadPrices parses the price of each operation for which the function text returns a value. The error names a price
// that is no number, is below 0, or is so high that the price of a message of many units would overflow.
func ReadPrices(text func(Price) (string, bool)) (Prices, error) {
	prices := Prices{}
	for _, p := range PriceList() {
		text, ok := text(p)
		if !ok {
			continue
		}
		credits, err := strconv.ParseInt(text, 10, 64)
		if err != nil || credits < 0 || credits > MaxPrice {
			return nil, fmt.Errorf("the price of %s is %q, not a whole number within 0 and %d", p.Name, text, int64(MaxPrice))
		}
		prices[p.Name] = credits
	}
	return prices, nil
}
