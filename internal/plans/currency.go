package plans

import "strings"

// exponents are the currencies that plans may have, and the digits of their minor unit. The
// list is ours, since golang.org/x/text has that of 2017. It is list one of ISO 4217 as of
// 2026, its codes for funds included, with these exceptions:
//   - Codes whose minor unit the list gives as "N.A." are missing: the metals XAU, XAG, XPT and
//     XPD, the units XBA, XBB, XBC, XBD, XDR, XSU and XUA, and XTS and XXX. No amount in them
//     can be rounded to a minor unit, so nobody can be billed in them.
//   - BGN is here, although Bulgaria took the euro on 2026-01-01: plans may be stored in it, and
//     their last periods are still to be billed.
//   - Codes that were withdrawn before are missing: HRK, CUC, SLL, ZWL, ANG. XCG is the one
//     that followed ANG, SLE followed SLL, ZWG followed ZWL. VED is an addition to VES.
var exponents = exponentsOf(
	0, `BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF`,
	2, `AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BGN BMD BND BOB BOV BRL BSD BTN BWP BYN
		BZD CAD CDF CHE CHF CHW CNY COP COU CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP
		GBP GEL GHS GIP GMD GTQ GYD HKD HNL HTG HUF IDR ILS INR IRR JMD KES KGS KHR KPW KYD KZT
		LAK LBP LKR LRD LSL MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MXV MYR MZN NAD NGN
		NIO NOK NPR NZD PAB PEN PGK PHP PKR PLN QAR RON RSD RUB SAR SBD SCR SDG SEK SGD SHP SLE
		SOS SRD SSP STN SVC SYP SZL THB TJS TMT TOP TRY TTD TWD TZS UAH USD USN UYU UZS VED VES
		WST XAD XCD XCG YER ZAR ZMW ZWG`,
	3, `BHD IQD JOD KWD LYD OMR TND`,
	4, `CLF UYW`,
)

// exponentsOf makes the map of a list of digits, each followed by its codes.
func exponentsOf(list ...any) map[string]int {
	of := make(map[string]int)
	for i := 0; i < len(list); i += 2 {
		for _, code := range strings.Fields(list[i+1].(string)) {
			of[code] = list[i].(int)
		}
	}
	return of
}

// Exponent is how many decimal digits the minor unit of a currency has, 0, 2, 3 or 4. It is
// false where code is not a currency that a plan may have: an alphabetic code of ISO 4217, in
// capitals, with a minor unit.
func Exponent(code string) (digits int, ok bool) {
	digits, ok = exponents[code]
	return digits, ok
}
