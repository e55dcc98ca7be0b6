// Package vectors finds and reads files of vectors, for tests: inputs, and the outcomes that must
// come of them. CONTRIBUTING.md says what is in each kind of file.
//
// It must never know what a vector means.
package vectors

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// Files are the files of a kind in the package's testdata, of which there is at least one.
func Files(t testing.TB, kind string) []string {
	t.Helper()
	return filesIn(t, filepath.Join("testdata", "vectors"), kind)
}

// filesIn are the files of a kind in a directory. There must be one. A kind of * is any.
func filesIn(t testing.TB, dir, kind string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, kind, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no vectors in %s/%s (%v)", dir, kind, err)
	}
	return files
}

// Each runs a subtest for each file of a kind, named as the file: of those in testdata, and of
// those in $QUOTAD_VECTORS_DIR. That may have other kinds only.
func Each(t *testing.T, kind string, run func(t *testing.T, path string)) {
	t.Helper()
	files := Files(t, kind)
	if dir := os.Getenv("QUOTAD_VECTORS_DIR"); dir != "" {
		for _, path := range filesIn(t, dir, "*") {
			if filepath.Base(filepath.Dir(path)) == kind {
				files = append(files, path)
			}
		}
	}
	for _, path := range files {
		t.Run(filepath.Base(path), func(t *testing.T) { run(t, path) })
	}
}

// Cases reads the cases of a file that has nothing else but its source. A member that T does not
// have is an error, and so is a file without cases.
func Cases[T any](path string) ([]T, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var file struct {
		Source string `json:"source"`
		Cases  []T    `json:"cases"`
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&file); err != nil {
		return nil, err
	}
	if len(file.Cases) == 0 {
		return nil, fmt.Errorf("%s holds no cases", path)
	}
	return file.Cases, nil
}
