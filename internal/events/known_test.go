package events

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// typeNames returns the constants of types in events.go: the value of each by its name.
func typeNames(t *testing.T) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "events.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		if value, ok := spec.Values[0].(*ast.BasicLit); ok && value.Kind == token.STRING && ast.IsExported(spec.Names[0].Name) {
			names[spec.Names[0].Name] = strings.Trim(value.Value, `"`)
		}
		return true
	})
	return names
}

// raised adds the types that a file of Go writes into an event: a type that is only compared is not raised.
func raised(t *testing.T, path string, names map[string]string, all map[string]bool) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CaseClause:
			for _, in := range n.Body {
				ast.Inspect(in, func(n ast.Node) bool { return uses(n, file.Name.Name, names, all) })
			}
			return false
		default:
			return uses(n, file.Name.Name, names, all)
		}
	})
}

func uses(n ast.Node, of string, names map[string]string, all map[string]bool) bool {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		return n.Op != token.EQL && n.Op != token.NEQ
	case *ast.SelectorExpr:
		if x, ok := n.X.(*ast.Ident); ok && x.Name == "events" && names[n.Sel.Name] != "" {
			all[names[n.Sel.Name]] = true
		}
	case *ast.Ident:
		if of == "events" && names[n.Name] != "" {
			all[names[n.Name]] = true
		}
	}
	return true
}

// Each constant is in the list of types, some code raises each type, and the guide and the internals describe
// each type and no other one.
func TestEachTypeIsRaisedAndDescribed(t *testing.T) {
	names, all := typeNames(t), map[string]bool{}
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") && path != filepath.Join("..", "events", "events.go") {
			raised(t, path, names, all)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	types := slices.Sorted(slices.Values(Types))
	for what, got := range map[string][]string{
		"constants are": slices.Sorted(maps.Values(names)),
		"code raises":   slices.Sorted(maps.Keys(all)),
		"the guide has": rowsOf(t, "../../docs/guide/events.md", "type"),
		"the page on internals says who raises": rowsOf(t, "../../docs/internals/events.md", "event"),
	} {
		if !slices.Equal(got, types) {
			t.Errorf("%s\n%s\nand the list of types has\n%s", what, strings.Join(got, " "), strings.Join(types, " "))
		}
	}
}

var (
	quoted = regexp.MustCompile("`([a-z_.]+)`")
	table  = func(head string) *regexp.Regexp { return regexp.MustCompile(`(?m)^\| ` + head + ` \|.*\n\| ---.*\n((?:\|.*\n?)+)`) }
)

// rowsOf returns the types in the first column of the table of a page whose first head is this one. A name that
// begins with a point has the part before the point from the name before.
func rowsOf(t *testing.T, path, head string) (types []string) {
	t.Helper()
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	found := table(head).FindSubmatch(page)
	if found == nil {
		t.Fatalf("%s has no table of types", path)
	}
	for row := range strings.Lines(string(found[1])) {
		first, before := strings.Split(row, "|")[1], ""
		for _, name := range quoted.FindAllStringSubmatch(first, -1) {
			if strings.HasPrefix(name[1], ".") {
				types = append(types, before+name[1])
				continue
			}
			before, _, _ = strings.Cut(name[1], ".")
			types = append(types, name[1])
		}
	}
	slices.Sort(types)
	return types
}
