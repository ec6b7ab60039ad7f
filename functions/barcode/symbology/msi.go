package symbology

import (
	"github.com/boombuler/barcode"
	"github.com/boombuler/barcode/utils"
)

// msi writes each digit as four bits, most significant first: 0 is a narrow bar and a wide space, 1 the
// opposite. There is no check digit in this type: 12n+7 modules.
func msi(data string) (barcode.Barcode, error) {
	bars := new(utils.BitList)
	bars.AddBits(0b110, 3)
	for i := range data {
		for bit := 3; bit >= 0; bit-- {
			one := int(data[i]-'0') >> bit & 1
			bars.AddBits(0b100|one<<1, 3)
		}
	}
	bars.AddBits(0b1001, 4)
	return utils.New1DCode("MSI", data, bars), nil
}
