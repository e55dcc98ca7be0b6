// Package drafts serves drafts of plans. It stores drafts, plays simulated hits through a draft, and compares a
// draft with past usage.
//
// The package never changes the limits of customers. A draft takes effect only when it is published as a plan.
package drafts

import "quotad/internal/api/serve"

// Room serves the routes of drafts.
type Room struct {
	*serve.Server
	Heavy *serve.Turns // places for plays and comparisons
}

// New returns a room.
func New(s *serve.Server) *Room { return &Room{Server: s, Heavy: serve.NewTurns(MaxHeavy)} }
