package client

import "time"

// ClockRequest is the body of PUT /v1/test-clocks/{key}.
type ClockRequest struct {
	Now string `json:"now" format:"date-time" doc:"The instant that the clock shows until it is set again.\n- RFC 3339, from 1970-01-01T00:00:00Z to 9000-01-01T00:00:00Z.\n- The clock may go back."`
}

// Clock is a test clock.
type Clock struct {
	Key string    `json:"key" doc:"The test clock's key."`
	Now time.Time `json:"now" doc:"The instant that the clock shows until it is set again, RFC 3339 in UTC."`
}
