package main

import (
	"context"
	"fmt"
	"time"

	"quotad/internal/postgres"
)

// PostgreSQL sessions outside the connection pools. Each lane has one session and its worker has another. Four
// more sessions listen for changes, poll for changes, read the clock, and check whether a database that was too
// slow commits again.
const (
	sessionsOfALane = 2
	sessionsBeside  = 4
)

// checkSessions returns an error if the lanes need more sessions than the server has. Otherwise some lanes would
// get no session when other clients connect first, and the hits of their customers would fail.
func (n *node) checkSessions(ctx context.Context, lanes int, databaseURL string) error {
	ctx, cancel := context.WithTimeout(ctx, n.atLeast(10*time.Second))
	defer cancel()
	conn, err := postgres.Connect(ctx, databaseURL, nil)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	room, err := postgres.RoomFor(ctx, conn)
	if err != nil {
		return fmt.Errorf("ask the database how many sessions it allows: %w", err)
	}
	pools := int(n.pool.Config().MaxConns + n.reads.Config().MaxConns)
	need := lanes*sessionsOfALane + pools + sessionsBeside
	if need <= room.Sessions {
		return nil
	}
	most := (room.Sessions - pools - sessionsBeside) / sessionsOfALane
	lower := fmt.Sprintf("set --lanes to at most %d", most)
	if most < 1 {
		least := (room.Sessions - sessionsOfALane - sessionsBeside) / 2
		lower = fmt.Sprintf("add pool_max_conns=%d to --database-url", least)
		if least < 1 {
			lower = "that is too few for any setting"
		}
	}
	return badSetting("lanes", "this node needs %d sessions of PostgreSQL (%d for each of %d lanes, %d of its pools, %d beside), and %s: %s, or raise that bound to %d for each node",
		need, sessionsOfALane, lanes, pools, sessionsBeside, room.By, lower, need)
}
