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

// zoneinfo is the file lib/time/zoneinfo.zip of the Go version that builds quotad. `make generate`
// copies the file. time.LoadLocation prefers $ZONEINFO and the machine's files to built-in data, so
// two nodes could begin a customer's day at different instants.
//
//go:embed zoneinfo.zip
var zoneinfo string

// zones contains a function for each name, which reads the timezone's data once.
var zones = sync.OnceValue(func() map[string]func() *time.Location {
	archive, err := zip.NewReader(strings.NewReader(zoneinfo), int64(len(zoneinfo)))
	if err != nil {
		panic("the zone data that is built in: " + err.Error())
	}
	byName := make(map[string]func() *time.Location, len(archive.File))
	for _, file := range archive.File {
		byName[file.Name] = sync.OnceValue(func() *time.Location { return readZone(file) })
	}
	delete(byName, "Factory") // a placeholder for a timezone that was not set
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

// Location returns the timezone with an IANA name such as "Europe/Berlin" or "UTC", from the data in the
// program. Equal names return the same pointer, so the result may be a map key. For other names, Location
// returns ErrUnknownZone.
func Location(name string) (*time.Location, error) {
	zone := zones()[name]
	if zone == nil {
		return nil, fmt.Errorf("%w: %.80q", ErrUnknownZone, name)
	}
	return zone(), nil
}
