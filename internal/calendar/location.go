package calendar

import (
	"archive/zip"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// ErrUnknownZone reports that a name is not the name of an IANA timezone.
var ErrUnknownZone = errors.New("unknown timezone")

// zoneinfo is lib/time/zoneinfo.zip of the Go version that builds quotad; `make generate` copies it.
// time.LoadLocation prefers $ZONEINFO and the machine's files to built-in data, so the start of a customer's day
// could differ between two nodes.
//
//go:embed zoneinfo.zip
var zoneinfo string

// zones returns a look-up function for each zone name. The function reads the zone's data once.
var zones = sync.OnceValue(func() map[string]func() *time.Location {
	archive, err := zip.NewReader(strings.NewReader(zoneinfo), int64(len(zoneinfo)))
	if err != nil {
		panic("the zone data that is built in: " + err.Error())
	}
	byName := make(map[string]func() *time.Location, len(archive.File))
	for _, file := range archive.File {
		byName[file.Name] = sync.OnceValue(func() *time.Location { return readZone(file) })
	}
	delete(byName, "Factory") // a placeholder that means that no zone was set
	byName["UTC"] = func() *time.Location { return time.UTC }
	return byName
})

func readZone(file *zip.File) *time.Location {
	var data []byte
	from, err := file.Open()
	if err == nil {
		data, err = io.ReadAll(from)
	}
	var zone *time.Location
	if err == nil {
		zone, err = time.LoadLocationFromTZData(file.Name, data)
	}
	if err != nil {
		panic("the zone data that is built in: " + file.Name + ": " + err.Error())
	}
	return zone
}

// Location returns the zone of an IANA name such as "Europe/Berlin" or "UTC", from the data that is built into
// the program. Equal names return the same pointer, so the pointer can be a map key. For an unknown name it
// returns ErrUnknownZone.
func Location(name string) (*time.Location, error) {
	zone := zones()[name]
	if zone == nil {
		return nil, fmt.Errorf("%w: %.80q", ErrUnknownZone, name)
	}
	return zone(), nil
}
