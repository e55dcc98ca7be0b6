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

// known returns the start and the known end of the running period. Both are kept when another end is written.
// They are nil if the running period is the open one, because the known end is then stored with the period.
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
		return &p.Start, &p.Base.To // the base's known end, because the base may continue after the period
	}
	return &p.Start, &p.KnownEnd
}

// edit is an account that is being edited. Its field line is the account's timeline, which each edit updates.
type edit struct {
	c       *Customer // the stored state
	line    *timeline.Timeline
	account billing.Account

	moved   bool // the start or the trial changed
	ended   bool // the end changed
	resumed bool // billing was over and begins again
}

// follow updates the timeline to the boundaries of an account.
func (e *edit) follow(a *billing.Account) {
	e.line.StartsAt, e.line.TrialEnd, e.line.End, e.line.Break = a.StartsAt, a.TrialEndsAt, a.EndsAt, nil
	if a.BreakFrom != nil && a.BreakTo != nil {
		e.line.Break = &timeline.Break{From: *a.BreakFrom, To: *a.BreakTo}
	}
	e.line.Periods.Cuts = a.Cuts([]int64{a.StartsAt})
}

// begin applies the new start and trial of an account. If standing is true, neither may be moved any more.
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

// end applies the new end of billing.
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

// sameEnd returns the wanted end. It returns the stored end if mark moved the wanted end by a microsecond
// when it was written, because of usage booked at that instant.
func sameEnd(want, was *int64, now int64) *int64 {
	if was != nil && want != nil && *want == *was-1 && *want <= now {
		return was
	}
	return want
}

// paid rejects an end at the start of the open period if that period's base price is already on an invoice.
// The period would then have no invoice that gives the base price back.
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

// periodEnd returns the end of the running period, or of the first period before billing begins. An end that
// was already requested as the period's end stays. If ofBase is true, periodEnd returns the end of the
// periods that the base price covers.
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
	} else if there { // its own end may be the end that this edit removes
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

// mark closes the customer's current usage if an edited boundary is in the past, so later charges count after
// the boundary. Billing that begins again begins at the mark.
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
		e.account.BreakTo = &after // usage before the restart was free
	case e.ended && end != nil && *end == e.c.Now:
		e.account.EndsAt = &after // usage until now is billed
	}
	return nil
}
