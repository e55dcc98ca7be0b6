package calendar

import "time"

// Hour returns the local hour [start, end) that contains at. Hours start when the wall clock of the timezone
// shows a full hour. They are also cut at every change of the offset. Therefore no hour is longer than 60
// minutes, and the hour of a clock jump may be shorter. Local days are sums of whole hours in every timezone,
// even with Lord Howe's half-hour jumps and Kathmandu's +05:45.
//
// Hour is fast enough to be called for every batch (two look-ups of the timezone). Its result is valid for every
// instant before end.
func Hour(at int64, loc *time.Location) (start, end int64) {
	at = clamp(at)
	offset, from, to := stretch(at, loc)
	start = floorDiv(at+offset, hour)*hour - offset
	end = start + hour
	// Bounds inside the hour are rare. Bounds without a change of the offset (a new name, the end of a UTC year)
	// do not cut the hour.
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
