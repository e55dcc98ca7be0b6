// Package drafts is drafts of plans: how they are stored, what hits make of one, and what it would
// have made of the past.
//
// It never changes what limits anybody: a draft limits once it is published, as a plan.
package drafts

import "quotad/internal/api/serve"

// Room serves the routes of drafts.
type Room struct {
	*serve.Server
	Heavy *serve.Turns // places for plays and comparisons
}

// New makes a room.
func New(s *serve.Server) *Room { return &Room{Server: s, Heavy: serve.NewTurns(MaxHeavy)} }
