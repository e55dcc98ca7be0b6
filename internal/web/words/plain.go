package words

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"quotad/client"
	"quotad/internal/quota/model"
)

// The following functions rewrite texts of the API for people, without names of JSON members, API calls and
// checks.

// apiCall matches a clause that names an API call to make. Pages have forms and links instead.
var apiCall = regexp.MustCompile(`(?:[:;,] | \()[^:;,(]*\b(?:GET|PUT|POST|DELETE) /v1/\S*[^:;,.)]*\)?`)

// algorithmNames maps each algorithm to its name for people.
var algorithmNames = map[model.Algorithm]string{
	model.FixedWindow: "Fixed window", model.SlidingWindow: "Sliding window", model.SlidingLog: "Exact log",
	model.TokenBucket: "Token bucket", model.Allocation: "Allocation", model.Concurrency: "Concurrency",
}

// AlgorithmName returns an algorithm's name for people. name is the algorithm's name in JSON.
func AlgorithmName(name string) string { return algorithmNames[model.AlgorithmNamed(name)] }

// memberWords replaces the names of plan members and values in texts of the API with the words of the pages.
var memberWords = strings.NewReplacer(slices.Concat(algorithmPairs(), []string{
	"first_hit", "first hit",
	"per_unit", "per unit", "unit_price", "unit price", "package_size", "units of a package", "package_price", "price of a package", "flat_price", "flat price",
	"up_to", "up to", "base_price_minor", "base price", "base_every", "number of periods of the base price", "minimum_minor", "minimum", "maximum_minor",
	"maximum", "amount_minor", "amount",
	"level_by", "level that is billed", "interval_count", "number of intervals", "plan_version", "version of the plan", "on_outage", "outage",
})...)

// algorithmPairs returns the JSON name of each algorithm, followed by its name for people.
func algorithmPairs() (pairs []string) {
	for a, name := range algorithmNames {
		pairs = append(pairs, a.String(), strings.ToLower(name))
	}
	return pairs
}

// Plainly returns a text of the API without API calls, and with the names of members in words.
func Plainly(text string) string {
	return memberWords.Replace(apiCall.ReplaceAllString(text, ""))
}

// element matches one name in a path, with an index if the name is a list.
var element = regexp.MustCompile(`^([^\[\]]+)(?:\[(\d+)\])?$`)

// PathWords returns the path of a member in words. For example, "lines[1].amount_minor" becomes "line 2,
// amount".
func PathWords(path string) string {
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

// Said returns the text of a problem. words returns the name of the member at a path.
func Said(p *client.Problem, words func(path string) string) string {
	var all []string
	for _, e := range p.Errors {
		all = append(all, strings.TrimPrefix(words(e.Field)+": "+e.Detail, ": "))
	}
	return cmp.Or(strings.Join(all, "; "), p.Detail, p.Title)
}
