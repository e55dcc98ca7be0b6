package problem

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"quotad/internal/plans"
	"quotad/internal/quota/locked"
	"quotad/internal/quota/model"
	"quotad/internal/quota/session"
)

// sentinels are all exported Err… variables of a package and those below it, as other
// packages write them.
func sentinels(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for name, object := range file.Scope.Objects {
			if object.Kind == ast.Var && strings.HasPrefix(name, "Err") {
				names = append(names, file.Name.Name+"."+name)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// internalDir is the directory of quotad's packages, above this one.
func internalDir(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for filepath.Base(dir) != "internal" {
		if dir == filepath.Dir(dir) {
			t.Fatal("there is no directory internal above")
		}
		dir = filepath.Dir(dir)
	}
	return dir
}

// A new sentinel that nobody gave a problem would be answered as our own defect.
func TestEverySentinelHasAProblem(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "table.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	inTable := map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			inTable[fmt.Sprintf("%s.%s", s.X, s.Sel)] = true
		}
		return true
	})
	for _, tree := range []string{"plans", "quota"} {
		names := sentinels(t, filepath.Join(internalDir(t), tree))
		if len(names) < 4 {
			t.Errorf("%s has only %d sentinels: the test looks at the wrong place", tree, len(names))
		}
		for _, name := range names {
			if !inTable[name] {
				t.Errorf("%s has no entry in errorTable", name)
			}
		}
	}
}

func TestProblemOf(t *testing.T) {
	secret := errors.New("host db-7.internal refused")
	for _, c := range []struct {
		err    error
		status int
		name   string
		detail string
	}{
		{fmt.Errorf("x: %w", plans.ErrUnknownCustomer), 404, "not-found", "x: no such customer"},
		{plans.ErrNotInPlan, 403, "not-in-plan", ""},
		{plans.ErrPrecondition, 412, "precondition-failed", ""},
		{plans.ErrPreconditionRequired, 428, "precondition-required", ""},
		{
			fmt.Errorf("%w: %w", session.ErrSlow, secret), 503, "database-unavailable",
			"the database answers too slowly; nothing was charged. Send it again in a second (Retry-After)",
		},
		{fmt.Errorf("%w: %w", session.ErrUnavailable, secret), 503, "database-unavailable", session.ErrUnavailable.Error() +
			". Send it again in a second (Retry-After)"},
		{fmt.Errorf("%w: %w", session.ErrNoSession, secret), 503, "database-refuses", ""},
		{fmt.Errorf("%w: %w", session.ErrReadOnly, secret), 503, "database-read-only", ""},
		{fmt.Errorf("%w: %w", session.ErrOutcomeUnknown, session.ErrUnavailable), 503, "outcome-unknown", ""},
		{fmt.Errorf("%w: %w", session.ErrOutcomeUnknown, context.DeadlineExceeded), 503, "outcome-unknown", ""},
		{fmt.Errorf("%w: %w", session.ErrBusy, context.DeadlineExceeded), 503, "too-busy", session.ErrBusy.Error()},
		{fmt.Errorf("%w: %w", session.ErrInternal, secret), 500, "internal", session.ErrInternal.Error()},
		{plans.ErrArchived, 409, "conflict", ""},
		{session.ErrStopped, 503, "stopping", ""},
		{&model.StaleError{Change: 7}, 503, "too-busy", ""},
		{context.DeadlineExceeded, 503, "too-busy", ""},
		{model.FieldErrors{{Field: "limits[0].window", Detail: "no"}}, 422, "invalid", "limits[0].window: no"},
		{model.FieldErrors{{Detail: "must be a JSON object"}}, 422, "invalid", "must be a JSON object"},
		{plans.ErrExists, 412, "precondition-failed", ""},
		{fmt.Errorf("%w: %w", locked.ErrUnderWay, context.DeadlineExceeded), 409, "under-way", ""},
		{fmt.Errorf("%w: %w", locked.ErrOtherPayload, secret), 422, "id-reused", ""},
		{fmt.Errorf("%w: %w", locked.ErrRefunded, secret), 409, "refunded", ""},
		{locked.ErrUnknownHit, 404, "not-found", ""},
		{locked.ErrUnknownReservation, 404, "not-found", ""},
		{locked.ErrArchived, 409, "archived", ""},
		{locked.ErrSettled, 409, "conflict", ""},
		{
			&locked.ManyReservationsError{Most: 7}, 409, "conflict",
			"the customer has 7 reservations open on the meter, which is the most (--max-reservations): commit or release some, or wait until they expire. Nothing was charged",
		},
		{&locked.NoRoomError{Most: 7}, 409, "does-not-fit", "the cost does not fit: at most 7 can be committed now; nothing was charged"},
		{locked.ErrNoSuchLimit, 404, "not-found", ""},
		{locked.ErrFuture, 422, "invalid", locked.ErrFuture.Error()},
		{&locked.TooMuchError{Most: 7}, 422, "invalid", "used: the limit can have at most 7 used; nothing was done"},
		{secret, 500, "internal", Broken.Detail},
	} {
		f := Of(c.err)
		if strings.Contains(f.Detail, secret.Error()) && c.err != secret { //nolint:errorlint // the very one
			t.Errorf("%v: the client is told %q", c.err, f.Detail)
		}
		if f.Kind.Status != c.status || f.Kind.Name != c.name || c.detail != "" && f.Detail != c.detail {
			t.Errorf("%v: %d %s %q, want %d %s %q", c.err, f.Kind.Status, f.Kind.Name, f.Detail, c.status, c.name, c.detail)
		}
	}
}

// A small request has no large answer: so many errors, and so much of each field.
func TestProblemsAreBounded(t *testing.T) {
	var all model.FieldErrors
	for range 5000 {
		all = append(all, model.FieldError{Field: strings.Repeat("é", 5000), Detail: "no"})
	}
	f := Of(all)
	text := Append(nil, f, MaxErrors)
	if len(f.Fields) != MaxErrors || len(text) > 20_000 || !strings.HasSuffix(f.Detail, "; 4995 more") || strings.Count(string(text), `"field"`) != MaxErrors {
		t.Errorf("%d errors in %d bytes: %s", len(f.Fields), len(text), f.Detail)
	}
	if len(all[0].Field) != 10_000 {
		t.Error("the caller's errors were changed")
	}
	if text := Append(nil, f, 5); strings.Count(string(text), `"field"`) != 5 {
		t.Errorf("%s", text)
	}
}

func TestProblemHeaders(t *testing.T) {
	for _, k := range Kinds {
		w := httptest.NewRecorder()
		Write(w, &Fault{Kind: k, Detail: "x"})
		if w.Code != k.Status || w.Header().Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: %d %v", k.Name, w.Code, w.Header())
		}
		if got := w.Header().Get("Retry-After"); (k.Status == 503 || k == KindUnderWay) != (got == "1") {
			t.Errorf("%s: Retry-After is %q", k.Name, got)
		}
		if k.Doc == "" || k.Title == "" {
			t.Errorf("%s is not documented", k.Name)
		}
	}
}
