package plans

import (
	"maps"
	"testing"
)

func TestExponents(t *testing.T) {
	for code, want := range map[string]int{
		"USD": 2, "EUR": 2, "GBP": 2, "MRU": 2, "MGA": 2, "IDR": 2, "XCG": 2, "ZWG": 2, "SLE": 2, "VED": 2, "VES": 2, "BGN": 2,
		"JPY": 0, "KRW": 0, "CLP": 0, "UYI": 0, "ISK": 0, "XOF": 0,
		"KWD": 3, "BHD": 3, "TND": 3, "IQD": 3,
		"CLF": 4, "UYW": 4,
	} {
		if got, ok := Exponent(code); !ok || got != want {
			t.Errorf("%s: %d, %v, want %d", code, got, ok, want)
		}
	}
	for _, code := range []string{
		"", "US", "usd", "USDX", "ZZZ", "€", // no codes
		"XAU", "XAG", "XPT", "XPD", "XBA", "XBB", "XBC", "XBD", "XDR", "XSU", "XUA", "XTS", "XXX", // without a minor unit
		"HRK", "CUC", "SLL", "ZWL", "ANG", "MRO", "STD", "VEF", "BYR", "DEM", "LTL", "EEK", // withdrawn
	} {
		if got, ok := Exponent(code); ok {
			t.Errorf("%s has %d digits", code, got)
		}
	}
}

// How many codes have how many digits, so that none is lost or written twice.
func TestExponentsAreAll(t *testing.T) {
	got := make(map[int]int)
	for code, digits := range exponents {
		if len(code) != 3 {
			t.Errorf("%q", code)
		}
		got[digits]++
	}
	if want := (map[int]int{0: 17, 2: 140, 3: 7, 4: 2}); !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
