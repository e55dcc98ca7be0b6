package assembly

import (
	"cmp"
	"strconv"

	"quotad/internal/plans"
)

// named is what a meter is called on invoices.
func named(meter plans.Meter) string { return cmp.Or(meter.Name, meter.Key) }

// counted writes a quantity for people: "12,345 × request". A unit is written as it was
// declared, since its plural is not known; hence the "×". Without a unit it is "12,345 units".
func counted(quantity int64, unit string) string {
	switch {
	case unit != "":
		return grouped(quantity) + " × " + unit
	case quantity == 1 || quantity == -1:
		return grouped(quantity) + " unit"
	}
	return grouped(quantity) + " units"
}

// grouped writes an integer with a comma before each three digits.
func grouped(n int64) string {
	digits := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, digits = "-", digits[1:]
	}
	for end := len(digits) - 3; end > 0; end -= 3 {
		digits = digits[:end] + "," + digits[end:]
	}
	return sign + digits
}
