package faults

import (
	"math/rand/v2"
	"sync"
	"time"
)

// fault is a way to break an exchange.
type fault int

// The faults. What the server did of the request is nothing for the first two, anything
// for cutUnderWay, and all of it for the two after.
const (
	none            fault = iota
	cutBefore             // before any byte of the request reaches the server
	cutWithin             // after some of its bytes
	cutUnderWay           // after what of it came in one go, a moment later
	cutUnanswered         // once the server has answered; none of the answer is passed on
	cutWithinAnswer       // after some bytes of the answer
	stall                 // the request is held up for a moment, and passed on
	numFaults
)

func (f fault) String() string {
	return [...]string{"none", "cut before", "cut within", "cut under way", "cut unanswered", "cut within the answer", "stalled"}[f]
}

// blow is what befalls one exchange.
type blow struct {
	fault fault
	part  float64       // of the bytes that are passed on, in [0, 1)
	pause time.Duration // of a stall, or before a cut under way
}

// share is how many of n bytes are passed on: some, but not all, if n is more than 1.
func (b blow) share(n int) int {
	if n < 2 {
		return 0
	}
	return 1 + int(b.part*float64(n-1))
}

// dice say what befalls exchanges, in an order that their seed decides.
type dice struct {
	mu     sync.Mutex
	random *rand.Rand
	odds   float64 // of a fault, in [0, 1]
	kinds  []fault // all as likely; more often the more often they are here
	stalls time.Duration
}

// newDice makes dice that hit an exchange with these odds, by these faults or, without
// any, by all. stalls bounds the pauses.
func newDice(seed uint64, odds float64, stalls time.Duration, kinds ...fault) *dice {
	if len(kinds) == 0 {
		for f := cutBefore; f < numFaults; f++ {
			kinds = append(kinds, f)
		}
	}
	return &dice{random: rand.New(rand.NewPCG(seed, 0xd1ce)), odds: odds, kinds: kinds, stalls: stalls}
}

// roll draws what befalls the next exchange.
func (d *dice) roll() blow {
	d.mu.Lock()
	defer d.mu.Unlock()
	// All of it is drawn each time, so that a change of the odds changes nothing else.
	hit, kind := d.random.Float64(), d.kinds[d.random.IntN(len(d.kinds))]
	b := blow{part: d.random.Float64(), pause: time.Duration(d.random.Float64() * float64(d.stalls))}
	if hit < d.odds {
		b.fault = kind
	}
	return b
}

// set changes the odds; 0 spares every exchange from now on.
func (d *dice) set(odds float64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.odds = odds
}
