package problem

import (
	"go/ast"
	"go/parser"
	"go/token"
	"testing"
)

// A kind that is not in the list has no documentation and no counter: a hit that fails with it
// would panic.
func TestEveryKindIsListed(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "kinds.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	made, listed := map[string]bool{}, map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		switch value := spec.Values[0].(type) {
		case *ast.UnaryExpr: // &Kind{…}
			made[spec.Names[0].Name] = true
		case *ast.CompositeLit: // the list
			for _, e := range value.Elts {
				if name, ok := e.(*ast.Ident); ok {
					listed[name.Name] = true
				}
			}
		}
		return true
	})
	if len(made) < 20 {
		t.Errorf("only %d kinds: the test looks at the wrong place", len(made))
	}
	for name := range made {
		if !listed[name] {
			t.Errorf("%s is not in Kinds", name)
		}
	}
}
