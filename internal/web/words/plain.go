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

// What the API says, for people: without the names of members, calls and checks.

// apiCall is a clause that says which call of the API to make. Pages have forms and links for that.
var apiCall = regexp.MustCompile(`(?:[:;,] | \()[^:;,(]*\b(?:GET|PUT|POST|DELETE) /v1/\S*[^:;,.)]*\)?`)

// algorithmNames are what people call each algorithm.
var algorithmNames = map[model.Algorithm]string{
	model.FixedWindow: "Fixed window", model.SlidingWindow: "Sliding window", model.SlidingLog: "Exact log",
	model.TokenBucket: "Token bucket", model.Allocation: "Allocation", model.Concurrency: "Concurrency",
}

// AlgorithmName is what people call an algorithm, by its name in JSON.
func AlgorithmName(name string) string { return algorithmNames[model.AlgorithmNamed(name)] }

// memberWords are members and values of plans that texts of the API name, as the pages call them.
var memberWords = strings.NewReplacer(slices.Concat(algorithmPairs(), []string{
	"first_hit", "first hit",
	"per_unit", "per unit", "unit_price", "unit price", "package_size", "units of a package", "package_price", "price of a package", "flat_price", "flat price",
	"up_to", "up to", "base_price_minor", "base price", "base_every", "number of periods of the base price", "minimum_minor", "minimum", "maximum_minor",
	"maximum", "amount_minor", "amount",
	"level_by", "level that is billed", "interval_count", "number of intervals", "plan_version", "version of the plan", "on_outage", "outage",
})...)

// algorithmPairs are the names of algorithms in JSON, each with that of the pages.
func algorithmPairs() (pairs []string) {
	for a, name := range algorithmNames {
		pairs = append(pairs, a.String(), strings.ToLower(name))
	}
	return pairs
}

// Plainly is a text of the API without the calls and the members that it names.
func Plainly(text string) string {
	return memberWords.Replace(apiCall.ReplaceAllString(text, ""))
}

// element is one name of a path, and its index where it is a list.
var element = regexp.MustCompile(`^([^\[\]]+)(?:\[(\d+)\])?$`)

// PathWords is the path of a member in words: "lines[1].amount_minor" is "line 2, amount".
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

// Said is what a problem says. words names the member of a path.
func Said(p *client.Problem, words func(path string) string) string {
	var all []string
	for _, e := range p.Errors {
		all = append(all, strings.TrimPrefix(words(e.Field)+": "+e.Detail, ": "))
	}
	return cmp.Or(strings.Join(all, "; "), p.Detail, p.Title)
}
