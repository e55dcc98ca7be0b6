package quota

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"quotad/internal/quota/model"
)

// TestEachAlgorithmIsProved: each algorithm that a plan may have is in a vector or a kept trace, in the random
// traces, and in the random operations. The oracles of both panic at one that they do not know. Hits do not know
// a limit of open reservations, so that only operations draw it.
func TestEachAlgorithmIsProved(t *testing.T) {
	files, err := filepath.Glob("testdata/*/*.json")
	if err != nil {
		t.Fatal(err)
	}
	more, err := filepath.Glob("testdata/vectors/limits/*.json")
	if err != nil {
		t.Fatal(err)
	}
	var kept strings.Builder
	for _, file := range append(files, more...) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		kept.Write(text)
	}
	for _, name := range model.AlgorithmNames() {
		if !slices.ContainsFunc(lockedAlgorithms, func(s model.Spec) bool { return s.Algorithm == name }) {
			t.Errorf("%s: no random operation has it", name)
		}
		if model.AlgorithmNamed(name).OnlyHolds() {
			continue
		}
		if !strings.Contains(strings.ReplaceAll(kept.String(), " ", ""), `"algorithm":"`+name+`"`) {
			t.Errorf("%s has no vector and no trace", name)
		}
		if !slices.Contains(traceAlgorithms, name) {
			t.Errorf("%s: no random trace draws it", name)
		}
	}
}
