package calendar

import "time"

// Hour returns the running local hour [start, end) that holds at. Hours start where the zone's
// wall clock shows a full hour. They are also cut wherever the zone's offset changes. So none
// is longer than an hour, and the one in which the clock jumps may be shorter. Local days are
// sums of whole hours in every zone, Lord Howe's half hours and Kathmandu's +05:45 included.
//
// It is fast enough to ask for every batch (two look-ups of the zone). What it returned stays
// right for every instant before end.
func Hour(at int64, loc *time.Location) (start, end int64) {
	at = clamp(at)
	offset, from, to := stretch(at, loc)
	start = floorDiv(at+offset, hour)*hour - offset
	end = start + hour
	// Bounds inside the hour are rare, and those where nothing changes (a new
	// name, the end of a UTC year) do not cut.
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
