package catalog

import "sync"

// common is what many customers have alike.
type common struct {
	plan           string
	pinned, joined int
	anonymous      bool
	zone           string
}

func commonOf(e *customerEntry) common {
	return common{plan: e.plan, pinned: e.pinned, joined: e.joined, anonymous: e.anonymous, zone: e.periods.Zone.String()}
}

// commons are numbered, so that a packed customer takes a byte or two for all of that.
type commons struct {
	mu      sync.RWMutex
	numbers map[common]uint64
	all     []common
}

// maxCommons bounds them: who has what came later is not packed.
const maxCommons = 20_000

// number is the number of what customers have alike; ok is false when there is too much.
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
