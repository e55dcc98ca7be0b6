package model

import "math"

// concurrency is the rule units in flight + cost ≤ limit. The limit applies only to reservations and counts the
// units of open reservations; hits ignore it. The row has no bucket for the limit, because the level is the sum of
// the counter's holds that are charged to the limit.
type concurrency struct{ counted }

var concurrencyDescriptor = descriptor{
	facts:  facts{kept: inHolds},
	number: Concurrency, name: "concurrency", window: noWindow, takes: []string{"ttl"}, hours: nothingByHour,
	compile: func(l *Limit, s *Spec, refuse refusal) rules {
		l.compileTTL(s, refuse)
		return concurrency{}
	},
}

func (concurrency) stand(l *Limit, _ bucket, _ int64, m moment) bucket {
	return bucket{level: m.holds.open(l.ID, m.at)}
}

// bringBack changes nothing, because there is no bucket and each hold ends at the expiry that its reservation
// returned.
func (concurrency) bringBack(_ *Limit, stored bucket, _ int64, _ moment) bucket { return stored }

func (concurrency) wait(*Limit, bucket, int64, moment) int64 { return Never }
func (concurrency) charge(_ *Limit, b bucket, c int64, _ moment) bucket {
	return bucket{min(b.level+c, softCap), 0}
}

func (concurrency) giveBack(_ *Limit, b bucket, _, cost int64, _ moment) bucket {
	return bucket{max(0, b.level-cost), 0}
}

// backdate changes nothing, because past usage is not in flight.
func (concurrency) backdate(_ *Limit, b bucket, _, _ int64, _ moment) bucket { return b }

func (concurrency) countsFrom(*Limit, bucket, moment) int64    { return 0 }
func (concurrency) began(*Limit, bucket, moment) (int64, bool) { return 0, false }
func (concurrency) lifetime(*Limit) int64                      { return 0 }
func (concurrency) mostIn(*Limit, int64, bool) int64           { return math.MaxInt64 }

func (concurrency) sound(*Limit, bucket, []int64) bool { return true } // the limit has no bucket

// resetAt returns NoReset for a used limit, because only the end of a hold returns units (see course).
func (concurrency) resetAt(_ *Limit, b bucket, m moment) int64 {
	if b.level == 0 {
		return m.at
	}
	return NoReset
}

// compileTTL reads the ttl of a concurrency limit.
func (l *Limit) compileTTL(s *Spec, refuse refusal) {
	var err error
	if s.TTL == "" {
		refuse("ttl", `is required: the longest that a reservation may be open, such as "10m"`)
	} else if l.TTL, err = ParseDuration(s.TTL); err != nil {
		refuse("ttl", "%s", err)
	} else if l.TTL < MinTTL || l.TTL > MaxTTL {
		refuse("ttl", "must be from %s to %s", durationText(MinTTL), durationText(MaxTTL))
	}
}

// MinTTL and MaxTTL bound the lifetime of a reservation, µs.
const (
	MinTTL = int64(1e3)
	MaxTTL = int64(24 * 3600e6)
)
