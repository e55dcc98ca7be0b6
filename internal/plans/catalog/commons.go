package catalog

import "sync"

// common is the part of a customer's entry that many customers share.
type common struct {
	plan           string
	pinned, joined int
	anonymous      bool
	zone           string
}

func commonOf(e *customerEntry) common {
	return common{plan: e.plan, pinned: e.pinned, joined: e.joined, anonymous: e.anonymous, zone: e.periods.Zone.String()}
}

// commons numbers the common parts. A packed customer stores the number, which takes a byte or two,
// instead of the part.
type commons struct {
	mu      sync.RWMutex
	numbers map[common]uint64
	all     []common
}

// maxCommons limits the numbered parts. A customer with any further part is not packed.
const maxCommons = 20_000

// number returns the number of a common part. A new part gets the next number. ok is false if there are
// already maxCommons parts.
func (c *commons) number(of common) (number uint64, ok bool) {
	c.mu.RLock()
	number, ok = c.numbers[of]
	c.mu.RUnlock()
	if ok {
		return number, true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if number, ok = c.numbers[of]; !ok && len(c.all) < maxCommons {
		number, ok = uint64(len(c.all)), true
		c.numbers[of], c.all = number, append(c.all, of)
	}
	return number, ok
}

func (c *commons) get(number uint64) common {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.all[number]
}
