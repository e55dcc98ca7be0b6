package accounts

import (
	"context"
	"slices"
	"strconv"

	"quotad/internal/billing"
	"quotad/internal/billing/timeline"
	"quotad/internal/plans/store"
	"quotad/internal/quota/model"
)

// known is the start of the period that runs, and the end that is known of it. They are kept when
// another end is written, unless the period is open: then the end is stored with it.
func (c *Customer) known(line *timeline.Timeline) (from, end *int64) {
	if c.Open == nil {
		return nil, nil
	}
	p, ok, err := line.At(*c.Open, c.Now)
	switch {
	case err != nil || !ok:
		return c.Account.KnownFrom, c.Account.KnownEnd
	case p.Start == c.Open.Start:
		return nil, nil
	}
	if p.Base != nil && p.Base.N == p.N {
		return &p.Start, &p.Base.To // of the base, which may go on after the period
	}
	return &p.Start, &p.KnownEnd
}

// edit is an account that is edited. line follows it.
type edit struct {
	c       *Customer // as it is stored
	line    *timeline.Timeline
	account billing.Account

	moved   bool // the start or the trial is another
	ended   bool // the end is another
	resumed bool // billing was over and begins again
}

// follow makes the timeline that of an account.
func (e *edit) follow(a *billing.Account) {
	e.line.StartsAt, e.line.TrialEnd, e.line.End, e.line.Break = a.StartsAt, a.TrialEndsAt, a.EndsAt, nil
	if a.BreakFrom != nil && a.BreakTo != nil {
		e.line.Break = &timeline.Break{From: *a.BreakFrom, To: *a.BreakTo}
	}
	e.line.Periods.Cuts = a.Cuts([]int64{a.StartsAt})
}

// begin takes the start and the trial. standing: neither may be moved any more.
func (e *edit) begin(in *AccountInput, standing bool) error {
	a := &e.account
	start := a.StartsAt
	if in.StartsAt != nil {
		start = *in.StartsAt
	}
	var bad model.FieldErrors
	if start != a.StartsAt {
		e.moved = true
		if standing {
			bad = append(bad, model.FieldError{Field: "starts_at", Detail: "cannot be moved: a billing period is closed, or the opening invoice is final"})
		}
	}
	if !sameInstant(in.TrialEndsAt, a.TrialEndsAt) {
		e.moved = true
		if standing {
			bad = append(bad, model.FieldError{Field: "trial_ends_at", Detail: "cannot be moved: a billing period is closed, or the opening invoice is final"})
		}
	}
	if in.TrialEndsAt != nil && *in.TrialEndsAt <= start {
		bad = append(bad, model.FieldError{Field: "trial_ends_at", Detail: "must be after starts_at"})
	}
	if len(bad) > 0 {
		return bad
	}
	back := start != a.StartsAt
	a.StartsAt, a.TrialEndsAt = start, in.TrialEndsAt
	if !back {
		return nil
	}
	a.StartsSetAt = e.c.Now
	unended := *a
	unended.EndsAt = nil
	e.follow(&unended)
	first, _ := e.line.First()
	if _, _, err := e.line.At(first, e.c.Now); err != nil {
		return fault("starts_at", "must be at most "+strconv.Itoa(timeline.MaxAhead)+" billing periods ago")
	}
	return nil
}

// end takes the end of billing.
func (e *edit) end(in *AccountInput) error {
	a, now := &e.account, e.c.Now
	want := in.EndsAt
	if in.PeriodEnd || in.BaseEnd {
		var err error
		if want, err = e.periodEnd(in.BaseEnd); err != nil {
			return err
		}
	}
	was := a.EndsAt
	want = sameEnd(want, was, now)
	e.ended = !sameInstant(want, was)
	a.EndsAt, a.EndsWithPeriod = want, in.PeriodEnd
	if !e.ended {
		return nil
	}
	from := a.StartsAt
	if !e.moved && e.c.Open != nil {
		from = e.c.Open.Start
	}
	over := was != nil && !e.moved && (e.c.Open == nil || *was <= now)
	switch {
	case !over && want != nil && *want < from, over && want != nil && *want <= now:
		return billing.ErrBeforePeriod
	case over && e.c.Open != nil && a.BreakFrom != nil && *a.BreakFrom >= e.c.Open.End:
		return billing.ErrClosing
	case over:
		e.resumed, a.BreakFrom = true, was
	}
	return nil
}

// sameEnd is the end that is wanted, or the stored one where that was written as the wanted one: mark
// had it come just after what was booked at that very instant.
func sameEnd(want, was *int64, now int64) *int64 {
	if was != nil && want != nil && *want == *was-1 && *want <= now {
		return was
	}
	return want
}

// paid refuses an end at the very start of the open period whose base in advance is on an invoice:
// no invoice of that period would come, to give the base back.
func (e *edit) paid(ctx context.Context, w *store.Writing) error {
	if !e.ended || e.moved || e.c.Open == nil || e.account.EndsAt == nil || *e.account.EndsAt != e.c.Open.Start {
		return nil
	}
	paid, err := paidAhead(ctx, w, e.c)
	if paid {
		err = billing.ErrPaidAhead
	}
	return err
}

// periodEnd is the end of the running period, or of the first one before it begins. What was
// asked for already stays. ofBase: it is the end of the periods that the base price of that one is for.
func (e *edit) periodEnd(ofBase bool) (*int64, error) {
	if !ofBase && e.account.EndsWithPeriod && e.account.EndsAt != nil {
		return e.account.EndsAt, nil
	}
	unended := e.account
	unended.EndsAt = nil
	e.follow(&unended)
	open, there := e.c.Open, e.c.Open != nil
	if e.moved {
		first, ok := e.line.First()
		open, there = &first, ok
	} else if there { // its own end may be the end that is lifted now
		again, ok := e.line.Again(open, false)
		open, there = &again, ok
	}
	if !there {
		return nil, fault("ends_at", "no billing period is open that could end")
	}
	p, ok, err := e.c.running(e.line, *open, max(e.c.Now, open.Start))
	if err != nil || !ok {
		return nil, fault("ends_at", "no billing period is open that could end")
	}
	if p.Base != nil && ofBase {
		return &p.Base.FullEnd, nil
	}
	return &p.End, nil
}

// mark ends what runs of the customer's usage where a boundary has come to be in the past. So
// what is charged from now on counts after it. Billing that begins again begins there.
func (e *edit) mark(ctx context.Context, w *store.Writing) error {
	past := e.resumed
	stored := e.c.Account.Cuts([]int64{e.c.Account.StartsAt})
	for _, cut := range e.account.Cuts([]int64{e.account.StartsAt}) {
		past = past || cut <= e.c.Now && !slices.Contains(stored, cut)
	}
	if !past {
		return nil
	}
	var meters []string
	if w.Open != nil {
		meters = w.Open.Meters
	}
	after, err := w.Mark(ctx, e.c.ID, e.c.Now, meters)
	switch end := e.account.EndsAt; {
	case err != nil:
		return err
	case e.resumed:
		e.account.BreakTo = &after // what was used before was free
	case e.ended && end != nil && *end == e.c.Now:
		e.account.EndsAt = &after // what was used until now is billed
	}
	return nil
}
