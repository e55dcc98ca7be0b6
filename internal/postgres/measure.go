package postgres

import (
	"context"
	"errors"
	"fmt"
)

// clockSQL reads the server's clock in µs since the epoch. The result is exact, because extract returns a
// numeric. The clock of a standby is not used, because charges use the primary's clock.
const clockSQL = `SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, pg_is_in_recovery()`

var errStandby = errors.New("the server is a standby")

// measureServer queries the server's time, over a new connection if the old connection is broken.
func (c *Clock) measureServer(ctx context.Context) (m measurement, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return m, errors.New("the clock is closed")
	}
	if c.conn != nil {
		if m, err = c.narrowest(ctx); err == nil {
			return m, nil
		}
		c.dropConn()
	}
	if c.conn, err = c.connect(ctx); err != nil {
		c.conn = nil
		return m, err
	}
	if m, err = c.narrowest(ctx); err != nil {
		c.dropConn() // the next attempt uses a new connection, whatever the error was
	}
	return m, err
}

// narrowest repeats the round trip a few times, until one is narrow enough. It returns the narrowest.
func (c *Clock) narrowest(ctx context.Context) (best measurement, err error) {
	// The first try also prepares the statement, so it is wide.
	for try := range measureTries {
		m, err := c.roundTrip(ctx)
		if err != nil {
			return best, fmt.Errorf("ask the database for its time: %w", err)
		}
		if try == 0 || m.width < best.width {
			best = m
		}
		if try > 0 && best.width <= int64(narrowEnough) {
			break
		}
	}
	return best, nil
}

// roundTrip makes one measurement. It assumes that the server read its clock in the middle of the round trip.
func (c *Clock) roundTrip(ctx context.Context) (m measurement, err error) {
	var standby bool
	before := c.local()
	if err = c.conn.QueryRow(ctx, clockSQL).Scan(&m.server, &standby); err != nil {
		return m, err
	}
	after := c.local()
	if standby {
		return m, errStandby
	}
	m.width = after.mono - before.mono
	m.at = instant{
		mono: before.mono + m.width/2,
		// The wall clock is the reading after the response, less half of the round trip. The check below detects
		// a step of the wall clock during the round trip.
		wall: after.wall - m.width/2,
	}
	if step := (after.wall - before.wall) - m.width; step > int64(maxStep) || step < -int64(maxStep) {
		return m, errors.New("the local clock moved during the round trip")
	}
	return m, nil
}

// dropConn closes the connection. The caller holds c.mu.
func (c *Clock) dropConn() {
	if c.conn != nil {
		CloseConn(c.conn)
		c.conn = nil
	}
}
