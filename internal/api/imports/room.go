// Package imports is what was used elsewhere: lines of a body that may take long, done in groups.
//
// Lines are charged and not judged. What is judged is in package hits.
package imports

import (
	"time"

	"quotad/internal/api/serve"
)

// Room serves the route of imports.
type Room struct {
	*serve.Server
	Open   *serve.Slots // places of imports that are open
	Groups *serve.Turns // places for groups of lines that are being done

	Wait, Pause time.Duration // DefaultWait and defaultPause; tests set others
}

// New makes a room.
func New(s *serve.Server) *Room {
	return &Room{
		Server: s, Wait: DefaultWait, Pause: defaultPause,
		Open: serve.NewSlots(MaxOpen, errManyImports, errOwnImports), Groups: serve.NewTurns(MaxGroups),
	}
}
