package document_test

import (
	"os"
	"path/filepath"
	"testing"
)

// TestSamplesAreDrawn draws all kinds and statuses. `go test -artifacts -outputdir DIR` keeps the
// files, to look at.
func TestSamplesAreDrawn(t *testing.T) {
	dir := t.ArtifactDir()
	for name, inv := range samples() {
		for end, content := range map[string][]byte{".html": []byte(html(t, inv)), ".pdf": pdf(t, inv)} {
			if err := os.WriteFile(filepath.Join(dir, name+end), content, 0o600); err != nil {
				t.Error(err)
			}
		}
	}
}
