package parts

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"quotad/client"
	"quotad/internal/quota/model"
	"quotad/internal/quota/play"
	"quotad/internal/web/page"
	"quotad/internal/web/words"
)

// TestPagesKnowEachAlgorithm: each algorithm has words of its own on cards and in plays.
func TestPagesKnowEachAlgorithm(t *testing.T) {
	names := model.AlgorithmNames()
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	reset, window := now.Add(time.Hour), "1h"
	v := &page.Visit{Zone: time.UTC}
	for _, name := range names {
		l := &client.QuotaLimit{Name: "x", Algorithm: name, Limit: 10, Used: 4, Remaining: 6, ResetAt: &reset, Window: &window}
		spec := &client.Limit{Spec: client.Spec{Name: "x", Algorithm: name, Limit: 10, Window: window}}
		said, there := algorithms[model.AlgorithmNamed(name)]
		if !there {
			t.Errorf("nothing is said of %s", name)
			continue
		}
		if words.AlgorithmName(name) == "" || (said.Says == nil) == slices.Contains(play.Algorithms, name) {
			t.Errorf("%s has no name, or no words in the playground", name)
		}
		if rule := Rule(l, spec); strings.Contains(rule, name) {
			t.Errorf("the rule of %s has no words: %s", name, rule)
		}
		if (said.gone == "") != (said.resets != nil) {
			t.Errorf("%s says neither or both of when units come back", name)
		}
		if (said.pace == notPaced) != (said.ends == nil) || (said.pace == notPaced) != (said.gone != "") {
			t.Errorf("the outlook of %s is not said", name)
		}
		var c, other Card
		c.Used, other.Used = 4, 4
		c.comesBack(v, l, spec, now)
		l.Algorithm = "no such algorithm"
		other.comesBack(v, l, spec, now)
		if reflect.DeepEqual(c, other) {
			t.Errorf("what comes back of %s has no words: %+v", name, c)
		}
	}
}
