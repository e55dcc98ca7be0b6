package postgres_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A server with Citus crashes at a SET whose value is a subscript of an array, such as
// SET state = (array)[a:b]. Within a function's arguments the subscript does no harm. So each
// slice of a statement is written coalesce((array)[a:b], '{}'), outside of SET too: no reader has
// to ask whether the fragment ends up in a SET.

// TestSlicesAreWithinCoalesce looks at all SQL of the program: the strings of Go files, and the
// migrations.
func TestSlicesAreWithinCoalesce(t *testing.T) {
	t.Parallel()
	good := make(map[string]int) // how many slices each file has
	check := func(path, sql string) {
		wrapped, faults := subscripts(sql)
		for _, f := range faults {
			t.Errorf("%s: a subscript that crashes a server with Citus, write coalesce((array)[a:b], '{}'): %s", path, f)
		}
		good[filepath.Base(path)] += wrapped
	}
	for _, dir := range []string{"../../internal", "../../cmd", "../../bench", "../../migrations"} {
		err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case strings.HasSuffix(path, ".sql"):
				text, err := os.ReadFile(path)
				check(path, string(text))
				return err
			case strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go"):
				texts, err := stringsOf(path)
				for _, text := range texts {
					if isSQL.MatchString(text) {
						check(path, text)
					}
				}
				return err
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"swap.go", "statements.go", "clocks.go"} {
		if good[file] == 0 {
			t.Errorf("no slice was found in %s: are statements written otherwise now?", file)
		}
	}
}

// TestSubscripts: what the test above finds.
func TestSubscripts(t *testing.T) {
	t.Parallel()
	for sql, want := range map[string]int{
		"UPDATE t SET a = ($1::bigint[])[i.x:i.y] FROM i":                        1,
		"UPDATE t SET a = b[2:], c = (b || d)[greatest(1, cardinality(b)):]":     2,
		"INSERT INTO t VALUES (1) ON CONFLICT DO UPDATE SET a = excluded.b[:2]":  1,
		"UPDATE t SET a = (('{1}'::bigint[])[1:2])::bigint[]":                    1,
		"INSERT INTO t (a) SELECT ($1::bigint[])[i.x:i.y] FROM i":                1,
		"UPDATE t SET a = coalesce(b[1:2], a)":                                   1, // as a reader expects it everywhere
		"UPDATE t SET n = b[1] WHERE b[2] = 1":                                   1,
		"UPDATE t SET n = b[1 + 1], m = (SELECT b[3])":                           1,
		"UPDATE t SET a = coalesce(($1::bigint[])[i.x:i.y], '{}') FROM i":        0,
		"UPDATE t SET a = coalesce((b || d)[greatest(1, cardinality(b)):],'{}')": 0,
		"UPDATE t SET a = ARRAY[1, 2]::bigint[] WHERE x = ANY (ARRAY[y])":        0,
		"UPDATE t SET a = '[1:2]', b = 1 -- b[1:2]\nWHERE b[2] = 1":              0,
		"SELECT (array_agg(a ORDER BY b))[1], $1::text[] FROM t":                 0,
	} {
		if _, faults := subscripts(sql); len(faults) != want {
			t.Errorf("%s: found %q, want %d", sql, faults, want)
		}
	}
}

var isSQL = regexp.MustCompile(`\b(SELECT|INSERT|UPDATE|DELETE FROM|MERGE|SET|FROM|WHERE|VALUES|RETURNING|CASE)\b`)

// stringsOf are the strings of a Go file, each with what is added to it; a name among that is a
// space.
func stringsOf(path string) (texts []string, err error) {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		return nil, err
	}
	var fold func(e ast.Expr) string
	fold = func(e ast.Expr) string {
		switch e := e.(type) {
		case *ast.BasicLit:
			if text, err := strconv.Unquote(e.Value); e.Kind == token.STRING && err == nil {
				return text
			}
		case *ast.BinaryExpr:
			if e.Op == token.ADD {
				return fold(e.X) + fold(e.Y)
			}
		}
		return " "
	}
	ast.Inspect(file, func(n ast.Node) bool {
		e, ok := n.(ast.Expr)
		if !ok {
			return true
		}
		text := strings.TrimSpace(fold(e))
		if text != "" {
			texts = append(texts, text)
		}
		return text == "" // its parts are in it
	})
	return texts, nil
}

var (
	sqlToken   = regexp.MustCompile(`(?s)--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'|"[^"]*"|::|[\w.$]+|\S`)
	setEnds    = []string{"FROM", "WHERE", "RETURNING", ";", "SELECT"}
	noCoalesce = []string{",", "'{}'", ")"} // what follows a slice that is as it must be
)

// subscripts counts the slices that are within a coalesce with '{}', and returns what precedes
// each other slice, and each subscript that is a value of a SET.
func subscripts(sql string) (wrapped int, faults []string) {
	type bracket struct {
		before string // the token in front of it
		at     int
		slice  bool
	}
	var open []bracket
	tokens := slices.DeleteFunc(sqlToken.FindAllString(sql, -1), func(s string) bool {
		return strings.HasPrefix(s, "--") || strings.HasPrefix(s, "/*")
	})
	set, before := false, ""
	for i, token := range tokens {
		switch {
		case token == "(" || token == "[":
			open = append(open, bracket{before: before, at: i})
		case token == ":" && len(open) > 0:
			open[len(open)-1].slice = true
		case (token == ")" || token == "]") && len(open) > 0:
			b := open[len(open)-1]
			open = open[:len(open)-1]
			if token == ")" || b.at == i-1 || strings.EqualFold(b.before, "ARRAY") {
				break
			}
			coalesced := len(open) > 0 && strings.EqualFold(open[len(open)-1].before, "coalesce") &&
				i+len(noCoalesce) < len(tokens) && slices.Equal(tokens[i+1:i+1+len(noCoalesce)], noCoalesce)
			switch {
			case b.slice && coalesced:
				wrapped++
			case b.slice, set && len(open) == 0:
				faults = append(faults, strings.Join(tokens[max(0, b.at-8):i+1], " "))
			}
		case len(open) == 0 && token == "SET":
			set = true
		case len(open) == 0 && slices.Contains(setEnds, token):
			set = false
		}
		before = token
	}
	return wrapped, faults
}
