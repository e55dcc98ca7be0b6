package calendar

import (
	"archive/zip"
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestLocation(t *testing.T) {
	for _, name := range append([]string{"Etc/GMT+12", "America/Argentina/Buenos_Aires", "GMT", "America/Port-au-Prince", "EST5EDT"}, oddZones...) {
		loc, err := Location(name)
		if err != nil || loc.String() != name {
			t.Errorf("%s: got %v, %v", name, loc, err)
		}
		if again, err := Location(name); err != nil || again != loc {
			t.Errorf("%s: a second call gave another zone, %v", name, err)
		}
	}
}

func TestLocationRefuses(t *testing.T) {
	for _, name := range []string{
		"", "Local", "localtime", "posixrules", "Factory", "Nowhere", "Europe", "Europe/", "/Europe/Berlin",
		"Europe//Berlin", "./UTC", "Europe/../Europe/Berlin", "../zoneinfo/UTC", "/etc/localtime", `\UTC`,
		"right/Europe/Berlin", "posix/Europe/Berlin", "tzdata.zi", "zone.tab", "leapseconds", "+VERSION", "+01:00",
		"Europe/Berlin\x00", " UTC", "UTC ", "Éurope/Berlin", "a/b/c/d", strings.Repeat("A", 65), strings.Repeat("x/", 1<<16),
	} {
		loc, err := Location(name)
		if !errors.Is(err, ErrUnknownZone) || loc != nil {
			t.Errorf("%.40q: got %v, %v", name, loc, err)
		}
		if err != nil && len(err.Error()) > 400 {
			t.Errorf("%.40q: an error of %d bytes", name, len(err.Error()))
		}
	}
}

// All callers get one pointer, whoever loads the zone first.
func TestLocationConcurrently(t *testing.T) {
	got := make([]*time.Location, 16)
	var group sync.WaitGroup
	for i := range got {
		group.Go(func() { got[i], _ = Location("Antarctica/Troll") })
	}
	group.Wait()
	for _, loc := range got {
		if loc == nil || loc != got[0] {
			t.Fatal("callers got different zones")
		}
	}
}

func TestEveryZoneIsThere(t *testing.T) {
	if n := len(zones()); n < 590 {
		t.Errorf("%d zones", n)
	}
	for name := range zones() {
		if loc, err := Location(name); err != nil || loc.String() != name {
			t.Errorf("%s: got %v, %v", name, loc, err)
		}
	}
}

// Whatever zone data the machine has, or $ZONEINFO names, nothing changes: a process whose
// Berlin is Kathmandu finds Berlin's midnight where it is.
func TestZonesAreBuiltIn(t *testing.T) {
	const marker = "QUOTAD_TEST_DOCTORED"
	if os.Getenv(marker) == "" {
		var doctored bytes.Buffer
		archive := zip.NewWriter(&doctored)
		original, err := zip.NewReader(strings.NewReader(zoneinfo), int64(len(zoneinfo)))
		if err != nil {
			t.Fatal(err)
		}
		data, err := fs.ReadFile(original, "Asia/Kathmandu")
		if err != nil {
			t.Fatal(err)
		}
		// Go's own reader takes what is stored as it is.
		file, err := archive.CreateHeader(&zip.FileHeader{Name: "Europe/Berlin", Method: zip.Store})
		if err == nil {
			_, err = file.Write(data)
		}
		path := filepath.Join(t.TempDir(), "zoneinfo.zip")
		if err := errors.Join(err, archive.Close(), os.WriteFile(path, doctored.Bytes(), 0o600)); err != nil {
			t.Fatal(err)
		}
		again := exec.Command(os.Args[0], "-test.run=^TestZonesAreBuiltIn$", "-test.v")
		again.Env = append(os.Environ(), marker+"=1", "ZONEINFO="+path)
		if out, err := again.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	at := time.Date(2026, 7, 1, 0, 0, 0, 0, time.UTC)
	fooled, err := time.LoadLocation("Europe/Berlin")
	if _, offset := at.In(fooled).Zone(); err != nil || offset != 5*3600+45*60 {
		t.Fatalf("the doctored data are not read, so this test shows nothing: %d, %v", offset, err)
	}
	berlin, err := Location("Europe/Berlin")
	if _, offset := at.In(berlin).Zone(); err != nil || offset != 2*3600 {
		t.Errorf("Berlin is %d s before UTC, %v", offset, err)
	}
}
