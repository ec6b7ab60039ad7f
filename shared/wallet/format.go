package wallet

import "strconv"

// Grouped returns a number of credits with a comma between groups of three digits: 1,234,567.
func Grouped(credits int64) string {
	digits, sign := strconv.FormatInt(credits, 10), ""
	if credits < 0 {
		sign, digits = "-", digits[1:]
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return sign + digits
}
