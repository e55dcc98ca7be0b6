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

// This file converts texts of the API for people. It removes the names of members, calls and checks.

// apiCall matches a clause that recommends a call of the API. Pages have forms and links instead.
var apiCall = regexp.MustCompile(`(?:[:;,] | \()[^:;,(]*\b(?:GET|PUT|POST|DELETE) /v1/\S*[^:;,.)]*\)?`)

// algorithmNames contains the names of algorithms for people.
var algorithmNames = map[model.Algorithm]string{
	model.FixedWindow: "Fixed window", model.SlidingWindow: "Sliding window", model.SlidingLog: "Exact log",
	model.TokenBucket: "Token bucket", model.Allocation: "Allocation", model.Concurrency: "Concurrency",
}

// AlgorithmName returns the name of an algorithm for people, by its name in JSON.
func AlgorithmName(name string) string { return algorithmNames[model.AlgorithmNamed(name)] }

// memberWords replaces members and values of plans in texts of the API by the words of the pages.
var memberWords = strings.NewReplacer(slices.Concat(algorithmPairs(), []string{
	"first_hit", "first hit",
	"per_unit", "per unit", "unit_price", "unit price", "package_size", "units of a package", "package_price", "price of a package", "flat_price", "flat price",
	"up_to", "up to", "base_price_minor", "base price", "base_every", "number of periods of the base price", "minimum_minor", "minimum", "maximum_minor",
	"maximum", "amount_minor", "amount",
	"level_by", "level that is billed", "interval_count", "number of intervals", "plan_version", "version of the plan", "on_outage", "outage",
})...)

// algorithmPairs returns the JSON names of algorithms, each followed by its name on the pages.
func algorithmPairs() (pairs []string) {
	for a, name := range algorithmNames {
		pairs = append(pairs, a.String(), strings.ToLower(name))
	}
	return pairs
}

// Plainly returns a text of the API without calls and member names.
func Plainly(text string) string {
	return memberWords.Replace(apiCall.ReplaceAllString(text, ""))
}

// element matches one name of a path, with its index if it is in a list.
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
