package embedded

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// stranger is a user whom nothing belongs to.
var stranger = &account{name: "stranger", uid: 4_242_424, gid: 4_242_424}

func TestClosedAbove(t *testing.T) {
	base := t.TempDir()
	deep := filepath.Join(base, "closed", "open")
	if err := os.MkdirAll(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	chmod := func(dir string, mode os.FileMode) {
		t.Helper()
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
	}
	chmod(filepath.Dir(base), 0o755) // made for this test by t.TempDir
	closed := filepath.Join(base, "closed")
	for mode, want := range map[os.FileMode]string{0o700: closed, 0o750: closed, 0o754: closed, 0o755: "", 0o711: ""} {
		chmod(closed, mode)
		if got, err := stranger.closedAbove(deep); err != nil || got != want {
			t.Errorf("%v: closed at %q, %v; want %q", mode, got, err, want)
		}
	}
	chmod(closed, 0o700)
	err := stranger.checkPrograms(Programs{Dir: deep})
	if !errors.Is(err, ErrNoPrograms) || !strings.Contains(err.Error(), closed) {
		t.Errorf("programs that cannot be reached: %v", err)
	}
	err = stranger.grantPath(deep, nil)
	if !errors.Is(err, ErrUnreachableDataDir) || !strings.Contains(err.Error(), closed) || !strings.Contains(err.Error(), DefaultDataDir()) {
		t.Errorf("a data directory that cannot be reached: %v", err)
	}
	if info, err := os.Stat(closed); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("a directory that is not quotad's was opened: %v, %v", info.Mode(), err)
	}
}

func TestOwnUserNeedsNothing(t *testing.T) {
	var own *account
	if own.grantPath("/nowhere", nil) != nil || own.checkPrograms(Programs{}) != nil || own.own("/nowhere") != nil || own.credential() != nil {
		t.Error("quotad's own user is treated as another")
	}
}
