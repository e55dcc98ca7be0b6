package model

import "math"

// allocation is the rule used + cost ≤ limit without a window. Units are returned only by refunds (seats,
// projects, stored gigabytes). The level is the number of used units.
type allocation struct{ counted }

var allocationDescriptor = descriptor{
	facts:  facts{kept: inBucket, stays: true},
	number: Allocation, name: "allocation", window: noWindow, hours: nothingByHour,
	compile: func(*Limit, *Spec, refusal) rules { return allocation{} },
}

func (allocation) stand(_ *Limit, stored bucket, _ int64, _ moment) bucket {
	return bucket{stored.level, 1}
}

// bringBack keeps the bucket, because used units count whenever they were charged.
func (allocation) bringBack(_ *Limit, stored bucket, _ int64, _ moment) bucket { return stored }

func (allocation) charge(_ *Limit, b bucket, cost int64, _ moment) bucket {
	return bucket{min(b.level+cost, softCap), 1}
}

func (allocation) wait(*Limit, bucket, int64, moment) int64 { return Never }

// resetAt returns NoReset for a used bucket, because time replenishes no units.
func (allocation) resetAt(_ *Limit, b bucket, m moment) int64 {
	if b.level == 0 {
		return m.at
	}
	return NoReset
}

func (allocation) giveBack(_ *Limit, b bucket, _, cost int64, _ moment) bucket {
	return bucket{max(0, b.level-cost), b.aux}
}

func (allocation) backdate(_ *Limit, b bucket, _, cost int64, _ moment) bucket {
	return bucket{min(b.level+cost, softCap), b.aux}
}

func (allocation) countsFrom(*Limit, bucket, moment) int64    { return 0 }
func (allocation) began(*Limit, bucket, moment) (int64, bool) { return 0, false }
func (allocation) lifetime(*Limit) int64                      { return 0 }
func (allocation) mostIn(*Limit, int64, bool) int64           { return math.MaxInt64 }
