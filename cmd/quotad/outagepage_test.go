package main

import (
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"

	"quotad/internal/api/problem"
)

// The guide's page on outages names metrics, messages of the log and types of problems that there are.
func TestOutagePage(t *testing.T) {
	t.Parallel()
	page := read(t, "../../docs/guide/outages.md")
	var table [][]string
	for line := range strings.Lines(page) {
		if cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | "); len(cells) == 4 && !strings.HasPrefix(line, "| ---") {
			table = append(table, cells)
		}
	}
	if len(table) < 10 {
		t.Fatalf("the table of outages has %d rows", len(table))
	}
	quoted := regexp.MustCompile("`([^`]+)`")
	said := sources(t)
	kinds := map[string]bool{"on_outage": true, "Retry-After": true}
	for _, kind := range problem.Kinds {
		kinds[kind.Name] = true
	}
	for _, row := range table[1:] {
		for _, kind := range quoted.FindAllStringSubmatch(row[1], -1) {
			if !kinds[kind[1]] {
				t.Errorf("%s: there is no problem %s", row[0], kind[1])
			}
		}
		for _, message := range quoted.FindAllStringSubmatch(row[2], -1) {
			if !strings.Contains(said, `"`+message[1]) {
				t.Errorf("%s: nothing logs %q", row[0], message[1])
			}
		}
		if !strings.Contains(row[3], "`") {
			t.Errorf("%s: no metric shows it", row[0])
		}
	}
	n := start(t, "")
	n.setUp(fixed("l", 100))
	n.hit(1).is(200)
	series := n.scrape()
	family := map[string]bool{}
	for one := range series {
		name, _, _ := strings.Cut(one, "{")
		family[name] = true
	}
	for _, text := range []string{page, read(t, "../../docs/guide/clock.md")} {
		for _, metric := range regexp.MustCompile("`((?:quotad|process)_[a-z_]+)({[^}]*})?`").FindAllStringSubmatch(text, -1) {
			if metric[1] == ofEmbedded && strings.Contains(said, `"`+strings.TrimPrefix(ofEmbedded, "quotad_")+`"`) {
				continue
			}
			if _, there := series[metric[1]+metric[2]]; !there && (!family[metric[1]] || strings.Contains(metric[2], "reason=")) {
				t.Errorf("there is no metric %s%s", metric[1], metric[2])
			}
		}
	}
}

// ofEmbedded is a metric of nodes with an embedded server alone.
const ofEmbedded = "quotad_disk_free_bytes"

// sources is all that quotad is made of.
func sources(t testing.TB) string {
	t.Helper()
	var all strings.Builder
	root := os.DirFS("../..")
	for _, room := range []string{"cmd/quotad", "internal"} {
		err := fs.WalkDir(root, room, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := fs.ReadFile(root, path)
			all.Write(text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all.String()
}
