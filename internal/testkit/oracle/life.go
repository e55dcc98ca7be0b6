package oracle

import "slices"

// A Life is one customer: what it was on, and all that happened to it.
type Life struct {
	World    *World
	Clock    *Clock
	Key      string
	Currency string
	Exponent int
	Account  Account

	Suspended bool
	Arrived   int // how many scheduled changes came to count

	terms     []Terms          // what it was on, the oldest first
	scheduled *Scheduled       // nil: none waits
	own       []OwnPrice       // the prices of its own, the oldest first
	startsPut int64            // when starts_at was changed last
	caps      map[string]int64 // by meter, minor units
	archived  bool
	chain     int
	cuts      []cut
	periods   []*Period
	entries   []*Entry
	hits      map[string]*Hit
	held      map[string][]Held // of level meters, in the order in which it happened
	charges   []*Charge         // that no invoice holds
	unused    []Back            // by periods whose own invoice became void, and what that gave back no other one does
	credits   []*Credit
	invoices  []*Invoice
	owed      *int64 // since when something waits for an extra invoice; nil: nothing does
}

// An Account is what PUT …/billing sets.
type Account struct {
	StartsAt    int64
	TrialEndsAt *int64
	EndsAt      *int64
	AfterEnd    string
	Taxes       []TaxRate
	Seller      string
	DueDays     int
}

// Terms are what a customer is on from a change on.
type Terms struct {
	Plan   string
	Pin    int // 0: none
	Zone   string
	Anchor string

	joined int // the version with which the customer came to the plan
	order  int
	from   int64 // it counts for no period that begins before
}

// An OwnPrice is a price of the customer's own from a change on; nil: none any more.
type OwnPrice struct {
	Meter string
	Price *Price

	order int
}

// An Entry is units of a meter in an hour: a hit, an import, an adjustment, a refund.
type Entry struct {
	Hour  int64
	Meter string
	Cost  int64

	adjustment bool
	done       int64 // when it was used or adjusted
}

// A Hit is one that has an id, and what refunds have left of it.
type Hit struct {
	entry *Entry
	left  int64
}

// NewLife is a customer that is made now.
func (w *World) NewLife(clock *Clock, key string, exponent int, t Terms) *Life {
	l := &Life{World: w, Clock: clock, Key: key, Currency: w.Newest(t.Plan).Currency, Exponent: exponent, hits: map[string]*Hit{}}
	l.Account = Account{StartsAt: clock.Now / second * second, AfterEnd: "block", Seller: "default", DueDays: 14}
	l.put(t)
	l.redraw()
	return l
}

// put notes terms.
func (l *Life) put(t Terms) {
	t.order, t.from = l.World.next(), 0
	t.joined = l.World.Newest(t.Plan).N
	if len(l.terms) > 0 {
		if last := l.terms[len(l.terms)-1]; last.Plan == t.Plan {
			t.joined = last.joined
		}
	}
	l.terms = append(l.terms, t)
}

// Put writes the customer. With now, the running period ends, if a new one is on other terms.
func (l *Life) Put(t Terms, now bool) {
	was := l.Terms()
	l.put(t)
	if was.Plan != t.Plan || was.Pin != t.Pin {
		l.scheduled = nil
	}
	if now {
		l.cut()
	}
	l.moveScheduled()
}

// Terms are what the customer is on by the last change.
func (l *Life) Terms() Terms { return l.terms[len(l.terms)-1] }

// PutOwn writes a price of the customer's own; nil: none any more. It counts from the next
// period on, or at once in the first period while that has no billed hit.
func (l *Life) PutOwn(meter string, p *Price) {
	o := OwnPrice{meter, p, l.World.next()}
	open := l.open()
	atOnce := l.First() && !l.used(open, meter)
	if atOnce {
		o.order = 0 // older than all
	}
	l.own = append(l.own, o)
	if atOnce {
		long := open.long
		l.price(open)
		open.long = long
	}
}

// OwnPrices are the prices of its own by the last change.
func (l *Life) OwnPrices() map[string]*Price { return l.ownBefore(l.World.order + 1) }

func (l *Life) ownBefore(order int) map[string]*Price {
	all := map[string]*Price{}
	for _, o := range l.own {
		switch {
		case o.order >= order:
		case o.Price == nil:
			delete(all, o.Meter)
		default:
			all[o.Meter] = o.Price
		}
	}
	return all
}

// Refuses is why a hit or a reservation is refused now, whatever its limits say: suspended, ended,
// or nothing.
func (l *Life) Refuses() string {
	switch ends := l.Account.EndsAt; {
	case l.Suspended:
		return "suspended"
	case l.Account.AfterEnd == "block" && ends != nil && *ends <= l.Clock.Now:
		return "ended"
	}
	return ""
}

// First reports whether the customer's first period is running.
func (l *Life) First() bool { return len(l.periods) > 0 && l.open() == l.periods[0] }

// used reports whether a period has a billed hit, or one on a meter that is to get a price.
func (l *Life) used(p *Period, meter string) bool {
	for of := range l.held {
		if (of == meter || p.priceOf(of) != nil) && (l.Level(of, l.Clock.Now) > 0 || len(l.changes(of, p.Start, l.Clock.Now+1)) > 0) {
			return true
		}
	}
	return slices.ContainsFunc(l.entries, func(e *Entry) bool {
		return e.Cost != 0 && p.holds(e.Hour) && (e.Meter == meter || p.priceOf(e.Meter) != nil)
	})
}

// Use notes units that were admitted now, under an id if it is not empty.
func (l *Life) Use(meter string, cost int64, id string) {
	e := l.Book(meter, cost, l.Clock.Now)
	if id != "" {
		l.hits[id] = &Hit{e, cost}
	}
}

// Adjust notes an adjustment at an instant.
func (l *Life) Adjust(meter string, cost, at int64) {
	e := l.Book(meter, cost, at)
	e.adjustment, e.done = true, l.Clock.Now
}

// Book notes units that were admitted at any instant, as by an import.
func (l *Life) Book(meter string, cost, at int64) *Entry {
	e := &Entry{Hour: l.hourAt(at), Meter: meter, Cost: cost, done: at}
	l.entries = append(l.entries, e)
	l.cameTo(e)
	return e
}

// hourAt is the start of the hour that holds an instant, cut where a period begins or ends.
func (l *Life) hourAt(at int64) int64 {
	start := hourOf(at, l.Terms().Zone)
	for _, p := range l.periods {
		if p.holds(at) {
			start = max(start, p.Start)
		}
		if p.End <= at {
			start = max(start, p.End)
		}
	}
	return start
}

// count is the usage of a meter in a period, as is known now.
func (l *Life) count(p *Period, meter string) (sum int64) {
	for _, e := range l.entries {
		if e.Meter == meter && p.holds(e.Hour) {
			sum += e.Cost
		}
	}
	return sum
}

// present is the present instant, or just after it where something was used or adjusted at it. There lies an end
// or a cut that is written now.
func (l *Life) present() int64 {
	now := l.Clock.Now
	if slices.ContainsFunc(l.entries, func(e *Entry) bool { return e.done == now && e.Hour > now-hour }) {
		return now + 1
	}
	return now
}
