package oracle

// A World is what its customers share: the plans, and the order of all changes.
type World struct {
	plans  map[string][]*Version
	levels []string // meters that count what is held
	order  int
}

// NewWorld has no plans yet.
func NewWorld() *World { return &World{plans: map[string][]*Version{}} }

// next draws the number of a change: later changes have greater ones.
func (w *World) next() int {
	w.order++
	return w.order
}

// A Tariff is a plan as PUT /v1/plans/{key} takes it, as far as billing goes.
type Tariff struct {
	Name           string   `json:"name"`
	Currency       string   `json:"currency"`
	Interval       string   `json:"interval"`
	IntervalCount  int      `json:"interval_count"`
	BasePriceMinor int64    `json:"base_price_minor"`
	BaseIn         string   `json:"base_in"`
	BaseEvery      int      `json:"base_every,omitempty"`
	MinimumMinor   int64    `json:"minimum_minor"`
	Meters         []string `json:"meters"`
	Prices         []Price  `json:"prices"`
	Limits         []any    `json:"limits,omitempty"`
	ApplyTo        string   `json:"apply_to"`
}

// A Version is one version of a plan.
type Version struct {
	Tariff
	N     int
	order int
}

// PutPlan writes the next version of a plan.
func (w *World) PutPlan(key string, t Tariff) *Version {
	v := &Version{t, len(w.plans[key]) + 1, w.next()}
	w.plans[key] = append(w.plans[key], v)
	return v
}

// Newest is the version with which a customer joins a plan now.
func (w *World) Newest(plan string) *Version {
	all := w.plans[plan]
	return all[len(all)-1]
}

// forAll is the number of the newest version for all that was written before a change; 0: none.
func (w *World) forAll(plan string, before int) (n int) {
	for _, v := range w.plans[plan] {
		if v.ApplyTo != "new" && v.order < before {
			n = v.N
		}
	}
	return n
}

// A Clock is a test clock. It only goes forward here.
type Clock struct {
	world *World
	Now   int64
	shown []showing
}

// A showing is an instant to which the clock was set.
type showing struct {
	at    int64
	order int
}

// NewClock shows an instant.
func (w *World) NewClock(now int64) *Clock {
	c := &Clock{world: w}
	c.Set(now)
	return c
}

// Set sets the clock. Tell each Life of it by Life.Tick.
func (c *Clock) Set(now int64) {
	c.Now = now
	c.shown = append(c.shown, showing{now, c.world.next()})
}

// passed is the change by which the clock reached an instant. What was written before it is
// older than the instant.
func (c *Clock) passed(at int64) int {
	for _, s := range c.shown {
		if s.at >= at {
			return s.order
		}
	}
	panic("the clock has not shown this yet")
}
