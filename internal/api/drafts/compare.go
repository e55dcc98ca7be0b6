package drafts

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"quotad/client"
	"quotad/internal/api/problem"
	"quotad/internal/api/respond"
	"quotad/internal/api/serve"
	"quotad/internal/billing/compare"
	"quotad/internal/plans"
	"quotad/internal/quota"
	"quotad/internal/quota/model"
)

// The bounds of one comparison.
const (
	compareDays = 30
	// CompareMost is the maximum number of compared customers.
	CompareMost = 1000
	// CompareFrom is the maximum number of customers, times meters, among which the customers with the most
	// usage are chosen.
	CompareFrom = 100_000
	// compareAtOnce is the number of customers whose hours are in memory at once.
	compareAtOnce = 20
	// compareHours is the maximum number of hours with usage that one read of these customers may return.
	compareHours = 200_000
)

var errManyVersions = problem.Invalid("", "more versions of plans are in force for these customers than one comparison may read: name a customer")

// comparison is a running comparison.
type comparison struct {
	server   *Room
	ctx      context.Context
	draft    *plans.Plan
	compiled *compare.Plan
	versions map[string]planInForce // by key and number
	sheet    *compare.Sheet
	now      int64
}

func (s *Room) compareDraft(c *serve.Call, in client.CompareRequest) (*client.Compare, error) {
	if err := s.takeHeavy(c); err != nil {
		return nil, err
	}
	defer s.Heavy.GiveBack()
	is, err := s.getDraft(c)
	if err == nil && len(is.bad) > 0 {
		err = problem.InvalidFields(is.bad)
	}
	if err != nil {
		return nil, err
	}
	// The comparison ends at this deadline and leaves out the remaining customers, so that the response is in
	// time.
	ctx, cancel := context.WithTimeout(c.Ctx(), s.Deadline*3/5)
	defer cancel()
	draft := &plans.Plan{PlanVersion: client.PlanVersion{Key: c.Key}, PlanInput: is.plan}
	x := &comparison{server: s, ctx: ctx, draft: draft, versions: make(map[string]planInForce)}
	body, err := x.run(in.Customer)
	return body, serve.OutOfTime(c.Ctx(), err)
}

// run compares one customer. If customer is nil, it compares the customers with the most usage.
func (x *comparison) run(customer *string) (body *client.Compare, err error) {
	if x.compiled, err = compare.Compile(x.draft); err != nil {
		return nil, err
	}
	if x.now, err = x.server.Instant(x.ctx); err != nil {
		return nil, err
	}
	var ids []int64
	others := false
	if customer == nil {
		ids, others, err = x.fullest()
	} else {
		ids, err = x.only(*customer)
	}
	if err != nil {
		return nil, err
	}
	const hour, day = int64(3600e6), int64(86400e6)
	to := x.now - x.now%hour
	archive, err := x.server.Engine.Archive(x.ctx)
	if err != nil {
		return nil, err
	}
	x.sheet = compare.New(x.compiled, min(to, max(to-compareDays*day, archive.GoneBefore)), to)
	for part := range slices.Chunk(ids, compareAtOnce) {
		err := x.add(part)
		if err != nil && x.ctx.Err() != nil {
			break // return the results so far
		}
		if err != nil {
			return nil, err
		}
	}
	return x.show(len(ids), others), nil
}

// only returns the id of one customer.
func (x *comparison) only(key string) ([]int64, error) {
	if !plans.ValidCustomerKey(key) {
		return nil, problem.Invalid("customer", plans.CustomerKeyRule)
	}
	c, err := x.server.Store.GetCustomer(x.ctx, key)
	if errors.Is(err, plans.ErrUnknownCustomer) {
		return nil, problem.Invalid("customer", "there is no such customer")
	}
	if err != nil {
		return nil, err
	}
	plan, _, err := x.inForce(c.Plan, c.EffectiveVersion)
	if err != nil {
		return nil, err
	}
	if plan.Currency != x.draft.Currency {
		return nil, problem.Invalid("customer", fmt.Sprintf("is billed in %s, and the draft is in %s: amounts cannot be compared", plan.Currency, x.draft.Currency))
	}
	if c.Clock != nil {
		x.now = c.Clock.Now
	}
	return []int64{c.ID}, nil
}

// fullest returns the plan's customers with the most units on the draft's meters.
func (x *comparison) fullest() (ids []int64, others bool, err error) {
	meters, err := x.server.Store.MeterIDs(x.ctx, x.draft.MeterKeys())
	if err != nil {
		return nil, false, err
	}
	var numbers []int32
	for _, id := range meters {
		numbers = append(numbers, id)
	}
	most := CompareFrom / max(1, len(numbers))
	if ids, others, err = x.server.Store.CustomersOn(x.ctx, x.draft.Key, most); err != nil {
		return nil, false, err
	}
	fullest, err := x.server.Engine.Fullest(x.ctx, ids, numbers, CompareMost)
	return fullest, others || len(fullest) < len(ids), err
}

// add reads and compares some customers.
func (x *comparison) add(ids []int64) error {
	customers, err := x.read(ids)
	if err != nil {
		return err
	}
	meters, err := x.metersOf(customers)
	if err != nil {
		return err
	}
	var who []int64
	var what []int32
	for _, c := range customers {
		for _, m := range meters {
			who, what = append(who, c.id), append(what, m.id)
		}
	}
	from := x.sheet.From - compare.Warmup(x.plansOf(customers)...)
	hours, full, err := x.server.Engine.Past(x.ctx, who, what, from, x.sheet.To, compareHours)
	if err == nil && full {
		err = problem.Invalid("", "there is more usage than one comparison may read: name a customer, or fewer meters in the draft")
	}
	if err != nil {
		return err
	}
	if err := x.held(customers, meters); err != nil {
		return err
	}
	for i, c := range customers {
		if x.ctx.Err() != nil {
			return x.ctx.Err()
		}
		used := make([]compare.Used, len(meters))
		for j, m := range meters {
			used[j] = compare.Used{Meter: m.key, Hours: pastHours(hours[i*len(meters)+j])}
		}
		x.sheet.Add(&c.Customer, used)
	}
	return nil
}

// held reads the customers' levels of level meters.
func (x *comparison) held(customers []*compared, meters []comparedMeter) error {
	var who []int64
	var what []int32
	var keep []func([]compare.Change)
	for _, c := range customers {
		c.Held = make(map[string][]compare.Change)
		for _, m := range meters {
			if model.IsLevel(m.id) {
				who, what = append(who, c.id), append(what, m.id)
				keep = append(keep, func(all []compare.Change) { c.Held[m.key] = all })
			}
		}
	}
	changes, full, err := x.server.Engine.LevelChanges(x.ctx, who, what, x.sheet.From, x.sheet.To, compareHours)
	if err == nil && full {
		err = problem.Invalid("", "there are more changes of levels than one comparison may read: name a customer, or fewer meters in the draft")
	}
	for i, list := range changes {
		all := make([]compare.Change, len(list))
		for n, change := range list {
			all[n] = compare.Change(change)
		}
		keep[i](all)
	}
	return err
}

func pastHours(from []quota.UsageHour) []compare.Hour {
	hours := make([]compare.Hour, len(from))
	for i, h := range from {
		hours[i] = compare.Hour(h)
	}
	return hours
}

// compared is a customer in the comparison.
type compared struct {
	compare.Customer
	id   int64
	plan *plans.Plan // the plan in force
}

// read reads customers with their own prices and overrides.
func (x *comparison) read(ids []int64) ([]*compared, error) {
	store := x.server.Store
	list, err := store.CustomersByID(x.ctx, ids)
	if err != nil {
		return nil, err
	}
	overrides, err := store.OverridesOf(x.ctx, ids)
	if err != nil {
		return nil, err
	}
	prices, err := store.OwnPricesOf(x.ctx, ids)
	if err != nil {
		return nil, err
	}
	var all []*compared
	for _, c := range list {
		plan, compiled, err := x.inForce(c.Plan, c.EffectiveVersion)
		if err != nil {
			return nil, err
		}
		periods, err := c.Periods(plan)
		if err != nil {
			return nil, err
		}
		all = append(all, &compared{
			Customer: compare.Customer{Periods: periods, Overrides: overrides[c.ID], Prices: prices[c.ID], Billed: !c.Anonymous, InForce: compiled},
			id:       c.ID, plan: plan,
		})
	}
	return all, nil
}

// show returns the response of the comparison.
func (x *comparison) show(chosen int, others bool) *client.Compare {
	s := x.sheet
	body := &client.Compare{
		From: respond.Time(s.From), To: respond.Time(s.To), Customers: s.Customers, Chosen: chosen, Others: others, Asked: s.Asked, Recorded: s.Recorded,
		Currency: x.draft.Currency, InForce: showSide(&s.InForce), Draft: showSide(&s.Draft), Limits: make([]client.CompareRow, len(s.Limits)),
		Notes: x.notes(chosen, others),
	}
	for i := range s.Limits {
		row := &s.Limits[i]
		body.Limits[i] = client.CompareRow{Meter: row.Meter, Limit: row.Name, InForce: showCell(row.InForce), Draft: showCell(row.Draft)}
	}
	return body
}

func showSide(s *compare.Side) client.CompareSide {
	shown := client.CompareSide{Refused: client.CompareRange(s.Refused), Customers: client.CompareRange(s.Customers)}
	if !s.TooLarge {
		billed := client.CompareRange(s.Billed)
		shown.Billed = &billed
	}
	return shown
}

func showCell(c *compare.Cell) *client.CompareCell {
	if c == nil {
		return nil
	}
	return &client.CompareCell{How: string(c.How), Refused: client.CompareRange(c.Refused), Customers: client.CompareRange(c.Customers)}
}

// notes returns the notes about inaccuracies of the comparison.
func (x *comparison) notes(chosen int, others bool) []client.CompareNote {
	notes := []client.CompareNote{
		{Name: "retries", Text: "Refused units count every retry. So what the draft would admit in addition is at most what stands here."},
		{Name: "billed", Text: "Each billing period that these 30 days touch is priced as if it were cut to them, and as if what the plan admits had been used. Trials, taxes and credits are left out."},
	}
	if x.sheet.Customers < chosen {
		notes = append(notes, client.CompareNote{Name: "time", Text: fmt.Sprintf("The time sufficed for %d of %d customers.", x.sheet.Customers, chosen)})
	}
	if others {
		notes = append(notes, client.CompareNote{
			Name: "others",
			Text: "Other customers are on the plan, too: those with fewer units, and beyond a bound any. They are left out.",
		})
	}
	for _, row := range x.sheet.Limits {
		for _, cell := range []*compare.Cell{row.InForce, row.Draft} {
			if cell == nil {
				continue
			}
			text := howNotes[cell.How]
			if text != "" && !slices.ContainsFunc(notes, func(n client.CompareNote) bool { return n.Name == string(cell.How) }) {
				notes = append(notes, client.CompareNote{Name: string(cell.How), Text: text})
			}
		}
	}
	return notes
}

var howNotes = map[compare.How]string{
	compare.Spread:  "Usage is stored by the hour. Windows that slide or refill are played with the units of each hour spread evenly.",
	compare.Bounds:  "Usage is stored by the hour. Of windows shorter than an hour, and of limits per attribute, only a least and a most is known.",
	compare.Unknown: "Allocations and concurrency limits are not played: hours of usage do not show what they judge.",
}
