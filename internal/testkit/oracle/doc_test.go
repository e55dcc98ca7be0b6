package oracle

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestTheFilesOfThePackage: the package comment names each file that there is, and no other.
func TestTheFilesOfThePackage(t *testing.T) {
	text, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`\w+\.go\b`).FindAllString(string(text), -1)
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	var there []string
	for _, e := range entries {
		if name := e.Name(); name != "doc.go" && strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") {
			there = append(there, name)
		}
	}
	slices.Sort(named)
	if !slices.Equal(named, there) {
		t.Errorf("the package comment names %q, there are %q", named, there)
	}
}
