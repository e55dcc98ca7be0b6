package calendar

import "time"

// Hour returns the local hour [start, end) that contains at. Hours start when the zone's wall clock shows a full
// hour, and are also cut whenever the zone's offset changes. Therefore no hour is longer than 60 minutes, and an
// hour with a clock jump may be shorter. In every zone, local days consist of whole hours, even with Lord Howe's
// half-hour jumps and Kathmandu's offset of +05:45.
//
// Hour needs only two zone look-ups, so it can be called for every batch. Its result stays valid for every
// instant before end.
func Hour(at int64, loc *time.Location) (start, end int64) {
	at = clamp(at)
	offset, from, to := stretch(at, loc)
	start = floorDiv(at+offset, hour)*hour - offset
	end = start + hour
	// A zone rarely has a bound inside the hour. A bound at which the offset stays the same (a new name, the end
	// of a UTC year) does not cut the hour.
	for from > start {
		before, earlier, _ := stretch(from-1, loc)
		if before != offset {
			start = from
			break
		}
		from = earlier
	}
	for to < end {
		after, _, later := stretch(to, loc)
		if after != offset {
			end = to
			break
		}
		to = later
	}
	return start, end
}
