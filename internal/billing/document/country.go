package document

import (
	"golang.org/x/text/language"
	"golang.org/x/text/language/display"
)

// country returns the name of a country for documents. It converts an ISO 3166 code of two or three letters,
// in either case, to the English name in Unicode's CLDR. It returns any other text unchanged.
func country(text string) string {
	if len(text) != 2 && len(text) != 3 {
		return text
	}
	for i := range len(text) {
		if c := text[i] | 0x20; c < 'a' || c > 'z' { // ParseRegion also accepts numeric codes
			return text
		}
	}
	region, err := language.ParseRegion(text)
	if err != nil || !region.IsCountry() {
		return text
	}
	return display.English.Regions().Name(region)
}
