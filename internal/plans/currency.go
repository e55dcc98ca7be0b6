package plans

import "golang.org/x/text/currency"

// newCurrencies are the codes of ISO 4217 that x/text lacks: its tables are of 2017. All have
// two digits of minor unit, except UYW with four.
var newCurrencies = map[string]bool{
	"MRU": true, "SLE": true, "UYW": true, "VED": true, "VES": true, "XCG": true, "ZWG": true,
}

// knownCurrency reports whether code is an alphabetic code of ISO 4217, in capitals.
func knownCurrency(code string) bool {
	if len(code) != 3 {
		return false
	}
	for i := range len(code) {
		if code[i] < 'A' || code[i] > 'Z' {
			return false
		}
	}
	if code == "XXX" || code == "XTS" {
		return false // "no currency" and "for testing": nobody can be billed in them
	}
	_, err := currency.ParseISO(code)
	return err == nil || newCurrencies[code]
}
