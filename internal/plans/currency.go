package plans

import "strings"

// exponents maps each currency that plans may have to the number of digits of its minor unit. The list is
// kept here because the list in golang.org/x/text dates from 2017. Its source is list one of ISO 4217 as
// of 2026, including the codes for funds, with these exceptions:
//   - Codes whose minor unit is "N.A." in ISO 4217 are missing: the metals XAU, XAG, XPT and XPD, the
//     units XBA, XBB, XBC, XBD, XDR, XSU and XUA, and XTS and XXX. Amounts in these currencies cannot be
//     rounded to a minor unit, so nobody can be billed in them.
//   - BGN is included, although Bulgaria adopted the euro on 2026-01-01, because stored plans may use BGN
//     and their last periods must still be billed.
//   - Codes that were withdrawn earlier are missing: HRK, CUC, SLL, ZWL, ANG. XCG replaced ANG, SLE
//     replaced SLL, and ZWG replaced ZWL. VED was added beside VES.
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

// exponentsOf builds the map from a list in which each number of digits is followed by its currency
// codes.
func exponentsOf(list ...any) map[string]int {
	of := make(map[string]int)
	for i := 0; i < len(list); i += 2 {
		for _, code := range strings.Fields(list[i+1].(string)) {
			of[code] = list[i].(int)
		}
	}
	return of
}

// Exponent returns the number of decimal digits of a currency's minor unit, which is 0, 2, 3 or 4. ok is
// false unless code is a currency that a plan may have: an alphabetic ISO 4217 code in capitals with a
// minor unit.
func Exponent(code string) (digits int, ok bool) {
	digits, ok = exponents[code]
	return digits, ok
}
