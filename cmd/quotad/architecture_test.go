package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// mostListed is how many files a list of ARCHITECTURE.md has at most.
const mostListed = 20

// TestArchitectureLists holds the lists of files in ARCHITECTURE.md against the code: the files are there,
// no list is longer than mostListed, and no file calls a function of one further up. It sees no calls of
// function values and of interfaces: the rows name what they are handed.
func TestArchitectureLists(t *testing.T) {
	page := read(t, "../../ARCHITECTURE.md")
	request := listedFiles(t, page, "### A request", "internal")
	hit := listedFiles(t, page, "### An admitted hit", "internal")
	id := listedFiles(t, page, "### A hit with an id", "internal/quota/locked")
	level := listedFiles(t, page, "### A hit on a level meter", "internal/quota/locked")
	change := listedFiles(t, page, "### A change of plan", "internal")
	payment := listedFiles(t, page, "### A payment", "internal")
	delivery := listedFiles(t, page, "### A webhook's delivery", "internal")
	invoice := listedFiles(t, page, "## The way of an invoice", "internal/billing")
	edit := listedFiles(t, page, "The files of a plan's edit", "internal/web")
	live := listedFiles(t, page, "An event stream updates live pages", "internal/web")
	all := [][]string{request, hit, id, level, change, payment, delivery, invoice, edit, live}
	for i, list := range all {
		if len(list) < 5 || len(list) > mostListed {
			t.Errorf("list %d has %d files, not 5 to %d: %v", i, len(list), mostListed, list)
		}
	}
	calls := callsOf(t, slices.Concat(all...))
	for name, course := range map[string][]string{
		"a hit":            slices.Concat(request, hit),
		"a hit with an id": slices.Concat(request, hit[:7], id, hit[9:]),
		"a level's hit":    slices.Concat(request, hit[:7], level),
		"a change of plan": slices.Concat(request, change),
		"a payment":        slices.Concat(request, payment),
		"a delivery":       delivery,
		"an invoice":       invoice, "a plan's edit": edit, "a live page": live,
	} {
		down := 0
		for at, file := range course {
			for _, c := range calls[file] {
				switch to := slices.Index(course, c.to); {
				case to > at:
					down++
				case to >= 0 && to < at:
					t.Errorf("%s: %s:%d calls %s of %s, which is further up", name, file, c.line, c.name, c.to)
				}
			}
		}
		if down < len(course) { // of each file to the next, about
			t.Errorf("%s: only %d calls were found between %d files: does the test see them?", name, down, len(course))
		}
	}
}

// mostFiles is how many shipped files a room has at most: what one sitting can read.
const mostFiles = 30

func TestRoomsAreSmall(t *testing.T) {
	seen := 0
	for path, p := range listPackages(t) {
		if !strings.HasPrefix(path, "quotad/") {
			continue
		}
		if seen++; len(p.GoFiles) > mostFiles {
			t.Errorf("%s has %d files: what of them is a room of its own?", path, len(p.GoFiles))
		}
	}
	if seen < 40 {
		t.Errorf("only %d rooms were found", seen)
	}
}

// listedFiles are the files in the first table after a heading, by their paths from the top of the
// repository. The table names them below a folder, below internal, or from the top.
func listedFiles(t *testing.T, page, heading, folder string) (files []string) {
	t.Helper()
	_, rest, ok := strings.Cut(page, heading)
	if !ok {
		t.Fatalf("ARCHITECTURE.md does not have %q", heading)
	}
	for line := range strings.Lines(rest) {
		cells := strings.Split(line, " | ")
		if !strings.HasPrefix(line, "| ") || !isNumber.MatchString(cells[0]) {
			if len(files) > 0 && !strings.HasPrefix(line, "|") {
				break
			}
			continue
		}
		for _, name := range inCode.FindAllStringSubmatch(cells[1], -1) {
			at := slices.IndexFunc([]string{folder, "internal", ""}, func(below string) bool {
				_, err := os.Stat(filepath.Join("../..", below, name[1]))
				return err == nil
			})
			if at < 0 {
				t.Errorf("%s: there is no file %s", heading, name[1])
				continue
			}
			files = append(files, filepath.Join([]string{folder, "internal", ""}[at], name[1]))
		}
	}
	return files
}

var (
	isNumber = regexp.MustCompile(`^\| \d+$`)
	inCode   = regexp.MustCompile("`([^`]+\\.go)`")
)

// aCall is a call of a function or method that is known before the program runs.
type aCall struct {
	name, to string // to is the file that declares it, from the top of the repository
	line     int
}

// callsOf finds the calls in files, by the file.
func callsOf(t *testing.T, files []string) map[string][]aCall {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	packages := listPackages(t)
	fset := token.NewFileSet()
	compiled := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(packages[path].Export) })
	calls := make(map[string][]aCall)
	for path, p := range packages {
		folder, err := filepath.Rel(root, p.Dir)
		if err != nil || !slices.ContainsFunc(files, func(file string) bool { return filepath.Dir(file) == folder }) {
			continue
		}
		var parsed []*ast.File
		for _, name := range p.GoFiles {
			file, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			parsed = append(parsed, file)
		}
		info := &types.Info{Uses: make(map[*ast.Ident]types.Object)}
		if _, err := (&types.Config{Importer: compiled}).Check(path, fset, parsed, info); err != nil {
			t.Fatal(err)
		}
		for _, file := range parsed {
			from := filepath.Join(folder, filepath.Base(fset.Position(file.Pos()).Filename))
			ast.Inspect(file, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok {
					if f, ok := info.Uses[called(call)].(*types.Func); ok && f.Pos().IsValid() {
						to, _ := filepath.Rel(root, fset.Position(f.Pos()).Filename)
						calls[from] = append(calls[from], aCall{f.Name(), to, fset.Position(call.Pos()).Line})
					}
				}
				return true
			})
		}
	}
	return calls
}

// called is the name that a call is of; nil where there is none.
func called(call *ast.CallExpr) *ast.Ident {
	f := ast.Unparen(call.Fun)
	switch x := f.(type) {
	case *ast.IndexExpr:
		f = x.X
	case *ast.IndexListExpr:
		f = x.X
	}
	switch x := f.(type) {
	case *ast.Ident:
		return x
	case *ast.SelectorExpr:
		return x.Sel
	}
	return nil
}

// listPackages are the packages of the program and what they import, compiled.
func listPackages(t *testing.T) map[string]listedPackage {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-buildvcs=false", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles", ".")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(fmt.Errorf("go list: %w", err))
	}
	all := make(map[string]listedPackage)
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listedPackage
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all[p.ImportPath] = p
	}
}

type listedPackage struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
}
