package calendar

import (
	"errors"
	"go/parser"
	"go/token"
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

func TestKeptZonesAreBounded(t *testing.T) {
	zones.Lock()
	kept := zones.byName
	zones.byName = make(map[string]*time.Location)
	zones.Unlock()
	defer func() {
		zones.Lock()
		zones.byName = kept
		zones.Unlock()
	}()
	for i := range 2 * maxZonesKept {
		keepZone(strings.Repeat("x", i+1), time.UTC)
	}
	if n := len(zones.byName); n != maxZonesKept {
		t.Errorf("%d zones kept", n)
	}
	if loc, err := Location("Europe/Paris"); err != nil || loc.String() != "Europe/Paris" {
		t.Errorf("past the bound: got %v, %v", loc, err)
	}
}

// The machine that runs the tests has zoneinfo and would not notice.
func TestZonesAreEmbedded(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "location.go", nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	for _, spec := range file.Imports {
		if spec.Path.Value == `"time/tzdata"` {
			return
		}
	}
	t.Error("time/tzdata is not linked in")
}
