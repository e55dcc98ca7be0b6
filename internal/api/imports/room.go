// Package imports serves imports of usage from other systems. The lines of a body, which may take long, are
// processed in groups.
//
// Lines are charged without being judged by limits. Package hits serves the operations that are judged.
package imports

import (
	"time"

	"quotad/internal/api/serve"
)

// Room serves the route of imports.
type Room struct {
	*serve.Server
	Open   *serve.Slots // places for open imports
	Groups *serve.Turns // places for groups of lines in progress

	Wait, Pause time.Duration // DefaultWait and defaultPause; tests set others
}

// New returns a room.
func New(s *serve.Server) *Room {
	return &Room{
		Server: s, Wait: DefaultWait, Pause: defaultPause,
		Open: serve.NewSlots(MaxOpen, errManyImports, errOwnImports), Groups: serve.NewTurns(MaxGroups),
	}
}
