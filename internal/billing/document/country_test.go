package document

import "testing"

func TestCountriesHaveNames(t *testing.T) {
	for text, want := range map[string]string{
		"DE": "Germany", "de": "Germany", "DEU": "Germany", "GR": "Greece", "GB": "United Kingdom", "CZ": "Czechia", "TR": "Turkey",
		"CI": "Côte d’Ivoire", "XK": "Kosovo", "TW": "Taiwan", "HK": "Hong Kong SAR China", "US": "United States", "USA": "United States",
		"": "", "ZZ": "ZZ", "QQ": "QQ", "EU": "EU", "276": "276", "Germany": "Germany", "Österreich": "Österreich", "D": "D", "日本": "日本", "D1": "D1",
	} {
		if got := country(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}
