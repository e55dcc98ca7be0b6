package web

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"quotad/client"
)

// What the API says, for people: without the names of members, calls and checks.

// apiCall is a clause that says which call of the API to make. Pages have forms and links for that.
var apiCall = regexp.MustCompile(`(?:[:;,] | \()[^:;,(]*\b(?:GET|PUT|POST|DELETE) /v1/\S*[^:;,.)]*\)?`)

// memberWords are members and values of plans that texts of the API name, as the pages call them.
var memberWords = strings.NewReplacer(slices.Concat(algorithmPairs(), []string{
	"first_hit", "first hit",
	"per_unit", "per unit", "unit_price", "unit price", "package_size", "units of a package", "package_price", "price of a package", "flat_price", "flat price",
	"up_to", "up to", "base_price_minor", "base price", "minimum_minor", "minimum", "maximum_minor", "maximum", "amount_minor", "amount",
	"interval_count", "number of intervals", "plan_version", "version of the plan", "on_outage", "outage",
})...)

// algorithmPairs are the names of algorithms in JSON, each with that of the pages.
func algorithmPairs() (pairs []string) {
	for a, words := range algorithms {
		pairs = append(pairs, a.String(), strings.ToLower(words.name))
	}
	return pairs
}

// plainly is a text of the API without the calls and the members that it names.
func plainly(text string) string {
	return memberWords.Replace(apiCall.ReplaceAllString(text, ""))
}

// element is one name of a path, and its index where it is a list.
var element = regexp.MustCompile(`^([^\[\]]+)(?:\[(\d+)\])?$`)

// pathWords is the path of a member in words: "lines[1].amount_minor" is "line 2, amount".
func pathWords(path string) string {
	var all []string
	for part := range strings.SplitSeq(path, ".") {
		found := element.FindStringSubmatch(part)
		if found == nil {
			return path
		}
		words := strings.ReplaceAll(strings.TrimSuffix(found[1], "_minor"), "_", " ")
		if i, err := strconv.Atoi(found[2]); err == nil {
			words = strings.TrimSuffix(words, "s") + " " + strconv.Itoa(i+1)
		}
		all = append(all, words)
	}
	return strings.Join(all, ", ")
}

// said is what a problem says. words names the member of a path.
func said(p *client.Problem, words func(path string) string) string {
	var all []string
	for _, e := range p.Errors {
		all = append(all, strings.TrimPrefix(words(e.Field)+": "+e.Detail, ": "))
	}
	return cmp.Or(strings.Join(all, "; "), p.Detail, p.Title)
}

// checkNames are the checks of the books in words.
var checkNames = map[string]string{
	"charged_is_booked":         "What was charged is booked as usage",
	"usage_is_billed":           "Usage is on the invoices",
	"lines_are_given_back_once": "No line is given back twice",
	"lines_are_totals":          "Lines add up to the totals",
	"rated_is_billed":           "Lines cost what the prices say",
	"periods_are_chained":       "Billing periods follow each other without a gap",
	"numbers_have_no_gap":       "Invoice numbers have no gap",
	"digests_match":             "Final invoices say what they said",
	"adjustments_are_claimed":   "Adjustments are on an invoice",
	"credits_add_up":            "Credits add up",
	"periods_can_close":         "Every billing period can be closed",
}

// checkName is a check of the books in words.
func checkName(name string) string {
	if words, known := checkNames[name]; known {
		return words
	}
	words := strings.ReplaceAll(name, "_", " ")
	return strings.ToUpper(words[:min(1, len(words))]) + words[min(1, len(words)):]
}

// checkList names several checks.
func checkList(names []string) string {
	all := make([]string, len(names))
	for i, name := range names {
		all[i] = "“" + checkName(name) + "”"
	}
	return strings.Join(all, ", ")
}
