package pdftest

import (
	"fmt"
	"strings"
)

// Invoice is a small document.
const Invoice = `<!DOCTYPE html><meta charset="utf-8"><style>body{font:11pt sans-serif}table{width:100%;border-collapse:collapse}td,th{padding:2mm;border-bottom:1px solid #888;text-align:left}
</style><h1>Invoice 2026-1042</h1><p>Nimal Perera, Kandy<br>20 November 2026</p><table><tr><th>Item<th>Count<th>Price<tr><td>Domain, one year<td>1<td>4,500.00
<tr><td>Hosting, one year<td>1<td>18,000.00<tr><td>Support, hours<td>6<td>21,000.00<tr><th>Total<th><th>43,500.00</table><p>ස්තුතියි. நன்றி. Thank you.`

// Table returns a document of 512 KiB. Each row has one line, so that the number of pages does not depend on a pixel.
func Table() string {
	var t strings.Builder
	t.WriteString("<!DOCTYPE html><table>")
	for i := 0; t.Len() < 524_288-200; i++ {
		fmt.Fprintf(&t, "<tr><td>%06d<td>A line of a long statement, with some words<td>Kandy, Central Province<td>%d.00", i, i*37%100_000)
	}
	return t.String()
}
