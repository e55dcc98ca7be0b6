package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestChoosePrograms(t *testing.T) {
	of := func(majors ...int) (found []Programs) {
		for _, m := range majors {
			found = append(found, Programs{Dir: fmt.Sprintf("/pg%d", m), Major: m, Version: fmt.Sprint(m, ".1")})
		}
		return found
	}
	for _, c := range []struct {
		found []Programs
		major int
		want  int // 0: an error
	}{
		{of(15, 18, 16), 0, 18},
		{of(15, 19), 0, 15}, // one that was tested rather than the newest
		{of(20, 19), 0, 19},
		{of(14, 19), 0, 19},
		{of(14), 0, 0},
		{of(), 0, 0},
		{of(18, 16, 15), 16, 16},
		{of(18, 15), 16, 0}, // no other version can read the data
		{of(19), 19, 19},
	} {
		got, err := choose(c.found, "", c.major)
		if got.Major != c.want || (err != nil) != (c.want == 0) {
			t.Errorf("choose(%v, %d) = %v, %v; want %d", c.found, c.major, got, err, c.want)
		}
		if err == nil {
			continue
		}
		for _, hint := range []string{"apt-get install", "brew install", "dnf install", "PGBIN"} {
			if !errors.Is(err, ErrNoPrograms) || !strings.Contains(err.Error(), hint) {
				t.Errorf("the error does not say %q: %v", hint, err)
			}
		}
	}
}

// fakePrograms puts scripts that only tell a version where programs would be.
func fakePrograms(t *testing.T, dir, version string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"postgres", "initdb"} {
		script := fmt.Sprintf("#!/bin/sh\necho '%s (PostgreSQL) %s'\n", name, version)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFindProgramsOnPath(t *testing.T) {
	base := t.TempDir()
	fakePrograms(t, filepath.Join(base, "real"), "18.99 (Debian 18.99-1)")
	// As /usr/local/bin/postgres is often a link to the packages' directory.
	links := filepath.Join(base, "links")
	if err := errors.Join(os.Mkdir(links, 0o755),
		os.Symlink(filepath.Join(base, "real", "postgres"), filepath.Join(links, "postgres"))); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PGBIN", "")
	t.Setenv("PATH", links+":"+os.Getenv("PATH"))
	got, err := FindPrograms(context.Background(), "", 0, slog.New(slog.DiscardHandler))
	want := Programs{Dir: filepath.Join(base, "real"), Major: 18, Version: "18.99"}
	if err != nil || got != want {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
}

func TestFindProgramsWhereTold(t *testing.T) {
	base := t.TempDir()
	for dir, version := range map[string]string{"beta": "19beta2", "old": "13.4", "devel": "20devel"} {
		fakePrograms(t, filepath.Join(base, dir), version)
	}
	t.Setenv("PGBIN", filepath.Join(base, "beta"))
	var warned strings.Builder
	got, err := FindPrograms(context.Background(), "", 0, slog.New(slog.NewTextHandler(&warned, nil)))
	if err != nil || got.Major != 19 || !strings.Contains(warned.String(), "19beta2") {
		t.Errorf("PGBIN: got %v, %v, logged %q", got, err, warned.String())
	}
	// The option wins over PGBIN.
	if got, err = FindPrograms(context.Background(), filepath.Join(base, "devel"), 20, slog.New(slog.DiscardHandler)); err != nil || got.Version != "20devel" {
		t.Errorf("option: got %v, %v", got, err)
	}
	for _, dir := range []string{"old", "none"} {
		dir = filepath.Join(base, dir)
		_, err := FindPrograms(context.Background(), dir, 0, slog.New(slog.DiscardHandler))
		if !errors.Is(err, ErrNoPrograms) || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: %v", dir, err)
		}
	}
	if _, err = FindPrograms(context.Background(), filepath.Join(base, "beta"), 15, slog.New(slog.DiscardHandler)); !errors.Is(err, ErrNoPrograms) ||
		!strings.Contains(err.Error(), "postgresql-15") {
		t.Errorf("another major: %v", err)
	}
}

func TestUserDataDir(t *testing.T) {
	for _, c := range []struct{ goos, xdg, want string }{
		{"linux", "", "/home/a/.local/share/quotad"},
		{"linux", "/data", "/data/quotad"},
		{"linux", "relative", "/home/a/.local/share/quotad"},
		{"darwin", "/data", "/home/a/Library/Application Support/quotad"},
	} {
		if got := userDataDir(c.goos, "/home/a", c.xdg); got != c.want {
			t.Errorf("userDataDir(%q, %q) = %q, want %q", c.goos, c.xdg, got, c.want)
		}
	}
}
