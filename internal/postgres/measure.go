package postgres

import (
	"context"
	"errors"
	"fmt"
)

// clockSQL reads the server's clock in µs since the epoch. The result is exact, because extract returns a
// numeric. A standby must be recognized, because charges do not use a standby's clock.
const clockSQL = `SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, pg_is_in_recovery()`

var errStandby = errors.New("the server is a standby")

// measureServer measures the server's time. If the old connection is broken, measureServer opens a new
// connection.
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
		c.dropConn() // whatever failed, the next attempt opens a new connection
	}
	return m, err
}

// narrowest repeats the round trip until one is narrow, but only a few times, and returns the narrowest
// measurement.
func (c *Clock) narrowest(ctx context.Context) (best measurement, err error) {
	// The first round trip also prepares the statement, so it is wide.
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

// roundTrip performs one measurement. It assumes that the server read its clock in the middle of the round trip.
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
		// The wall clock's time is the reading after the answer, minus half of the round trip. The check below
		// detects a step of the wall clock during the round trip.
		wall: after.wall - m.width/2,
	}
	if step := (after.wall - before.wall) - m.width; step > int64(maxStep) || step < -int64(maxStep) {
		return m, errors.New("the local clock moved during the round trip")
	}
	return m, nil
}

// dropConn closes the connection. The caller must have locked c.mu.
func (c *Clock) dropConn() {
	if c.conn != nil {
		CloseConn(c.conn)
		c.conn = nil
	}
}
