package document

import (
	"golang.org/x/text/language"
	"golang.org/x/text/language/display"
)

// country is what papers call a country: a code of ISO 3166 by its name, and any other text as it is.
// Codes have two letters or three, of either case. The names are those of Unicode's CLDR, in English.
func country(text string) string {
	if len(text) != 2 && len(text) != 3 {
		return text
	}
	for i := range len(text) {
		if c := text[i] | 0x20; c < 'a' || c > 'z' { // numbers are codes of regions, too
			return text
		}
	}
	region, err := language.ParseRegion(text)
	if err != nil || !region.IsCountry() {
		return text
	}
	return display.English.Regions().Name(region)
}
