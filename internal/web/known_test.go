package web

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"quotad/client"
	"quotad/internal/plans"
	"quotad/internal/quota/model"
	"quotad/internal/quota/play"
)

func optionsOf(fields []planField, name string) []string {
	at := slices.IndexFunc(fields, func(f planField) bool { return f.Name == name })
	return slices.Sorted(slices.Values(fields[at].Options))
}

// TestPagesKnowEachAlgorithm: each algorithm can be chosen in the editor, and has words of its own
// on cards and in plays.
func TestPagesKnowEachAlgorithm(t *testing.T) {
	names := model.AlgorithmNames()
	if got := optionsOf(limitFields, "algorithm"); !slices.Equal(got, slices.Sorted(slices.Values(names))) {
		t.Errorf("the editor offers %q", got)
	}
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	reset, window := now.Add(time.Hour), "1h"
	v := &Visit{zone: time.UTC}
	for _, name := range names {
		l := &client.QuotaLimit{Name: "x", Algorithm: name, Limit: 10, Used: 4, Remaining: 6, ResetAt: &reset, Window: &window}
		spec := &client.Limit{Spec: client.Spec{Name: "x", Algorithm: name, Limit: 10, Window: window}}
		words, there := algorithms[model.AlgorithmNamed(name)]
		if !there {
			t.Errorf("nothing is said of %s", name)
			continue
		}
		if algorithmName(name) == "" || (words.says == nil) == slices.Contains(play.Algorithms, name) {
			t.Errorf("%s has no name, or no words in the playground", name)
		}
		if words := rule(l, spec); strings.Contains(words, name) {
			t.Errorf("the rule of %s has no words: %s", name, words)
		}
		if (words.gone == "") != (words.resets != nil) {
			t.Errorf("%s says neither or both of when units come back", name)
		}
		if (words.pace == notPaced) != (words.ends == nil) || (words.pace == notPaced) != (words.gone != "") {
			t.Errorf("the outlook of %s is not said", name)
		}
		var c, other card
		c.Used, other.Used = 4, 4
		c.comesBack(v, l, spec, now)
		l.Algorithm = "no such algorithm"
		other.comesBack(v, l, spec, now)
		if reflect.DeepEqual(c, other) {
			t.Errorf("what comes back of %s has no words: %+v", name, c)
		}
	}
}

// TestPagesKnowEachPriceModel: each can be chosen in the editor, and has words of its own.
func TestPagesKnowEachPriceModel(t *testing.T) {
	models := plans.PriceModels()
	if got := optionsOf(priceFields, "model"); !slices.Equal(got, models) {
		t.Errorf("the editor offers %q", got)
	}
	amount, size := "0.05", int64(100)
	for _, name := range models {
		p := client.Price{Model: name, UnitPrice: &amount, PackageSize: &size, PackagePrice: &amount, Tiers: []client.Tier{{UnitPrice: amount}}}
		if words := priceWords(&p, "EUR", "request"); slices.Contains(words, name) {
			t.Errorf("%s has no words: %q", name, words)
		}
	}
}
