package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"quotad/internal/api/problem"
	"quotad/internal/billing/compare"
	"quotad/internal/plans"
	"quotad/internal/quota"
)

// Bounds of one comparison.
const (
	compareDays = 30
	// compareMost is how many customers are compared.
	compareMost = 1000
	// compareFrom is how many customers, times meters, the fullest ones are chosen from.
	compareFrom = 100_000
	// compareAtOnce is how many customers' hours are in memory at once.
	compareAtOnce = 20
	// compareHours is how many hours with usage one read of these may have.
	compareHours = 200_000
)

type compareRequest struct {
	Customer string `json:"customer,omitempty" maxLength:"200" doc:"Only this customer, whatever plan it is on. When left out, the 1,000 customers on the plan with the most units."`
}

type compareBody struct {
	From      time.Time     `json:"from"`
	To        time.Time     `json:"to" doc:"The start of the running hour, which is not compared."`
	Customers int           `json:"customers" doc:"Customers that were compared."`
	Chosen    int           `json:"chosen" doc:"Customers that were to be compared. There are more than were compared if the time did not suffice."`
	Others    bool          `json:"others" doc:"The plan has other customers, who are left out."`
	Asked     int64         `json:"asked" doc:"Units that hits asked for: admitted ones, and refused ones with every retry."`
	Recorded  int64         `json:"recorded_refused" doc:"Of these, units that were refused then. A statistic."`
	Currency  string        `json:"currency" doc:"Of the draft, and of its amounts."`
	InForce   compareSide   `json:"in_force"`
	Draft     compareSide   `json:"draft"`
	Limits    []compareRow  `json:"limits"`
	Notes     []compareNote `json:"notes" doc:"What the numbers leave open."`
}

type compareNote struct {
	Name string `json:"name" doc:"Never changes, so clients may branch on it."`
	Text string `json:"text"`
}

type compareRange struct {
	Least int64 `json:"least"`
	Most  int64 `json:"most"`
}

type compareSide struct {
	Refused   compareRange  `json:"refused" doc:"Units."`
	Customers compareRange  `json:"customers_refused" doc:"Customers with a refusal."`
	Billed    *compareRange `json:"billed_minor,omitempty" doc:"What would be billed, without taxes, in minor units. Left out where an amount is too large to be billed."`
}

type compareRow struct {
	Meter   string       `json:"meter"`
	Limit   string       `json:"limit"`
	InForce *compareCell `json:"in_force,omitempty" doc:"Left out where no customer's plan in force has the limit."`
	Draft   *compareCell `json:"draft,omitempty" doc:"Left out where the draft does not have the limit."`
}

type compareCell struct {
	How       compare.How  `json:"how" enum:"by_hour,spread,bounds,unknown,admits" doc:"How the limit was played:\n- by_hour: from the hours of usage, exact for hits of one unit.\n- spread: from the hours of usage, with the units of each spread evenly.\n- bounds: only a least and a most is known, since usage is stored by the hour.\n- unknown: it cannot be known from hours, as of an allocation.\n- admits: the limit is soft or a shadow, and refuses nothing."`
	Refused   compareRange `json:"refused" doc:"Units."`
	Customers compareRange `json:"customers" doc:"Customers that it refused units."`
}

var errManyVersions = problem.Invalid("", "more versions of plans are in force for these customers than one comparison may read: name a customer")

// comparison is one under way.
type comparison struct {
	server   *Server
	ctx      context.Context
	draft    *plans.Plan
	compiled *compare.Plan
	versions map[string]planInForce // by key and number
	sheet    *compare.Sheet
	now      int64
}

func (s *Server) compareDraft(c *call) (answer, error) {
	key, err := nameInPath(c.r, "key")
	if err != nil {
		return answer{}, err
	}
	var in compareRequest
	if err = decode(c.body, &in); err != nil {
		return answer{}, err
	}
	if err = s.takeHeavy(c); err != nil {
		return answer{}, err
	}
	defer s.heavy.giveBack()
	_, draft, bad, _, err := s.draft(c, key)
	if err == nil && len(bad) > 0 {
		err = problem.InvalidFields(bad)
	}
	if err != nil {
		return answer{}, err
	}
	// What is not compared by then is left out, so that there is an answer in time.
	ctx, cancel := context.WithTimeout(c.ctx(), s.options.Deadline*3/5)
	defer cancel()
	x := &comparison{server: s, ctx: ctx, draft: &plans.Plan{Key: key, PlanInput: draft}, versions: make(map[string]planInForce)}
	body, err := x.run(in.Customer)
	if err != nil {
		return answer{}, outOfTime(c.ctx(), err)
	}
	return answer{status: http.StatusOK, body: body}, nil
}

// run compares one customer, or the fullest ones where it is empty.
func (x *comparison) run(customer string) (body *compareBody, err error) {
	if x.compiled, err = compare.Compile(x.draft); err != nil {
		return nil, err
	}
	if x.now, err = x.server.instant(x.ctx); err != nil {
		return nil, err
	}
	var ids []int64
	others := false
	if customer == "" {
		ids, others, err = x.fullest()
	} else {
		ids, err = x.only(customer)
	}
	if err != nil {
		return nil, err
	}
	const hour, day = int64(3600e6), int64(86400e6)
	to := x.now - x.now%hour
	x.sheet = compare.New(x.compiled, to-compareDays*day, to)
	for part := range slices.Chunk(ids, compareAtOnce) {
		err := x.add(part)
		if err != nil && x.ctx.Err() != nil {
			break // what was compared so far is told
		}
		if err != nil {
			return nil, err
		}
	}
	return x.show(len(ids), others), nil
}

// only is the id of one customer.
func (x *comparison) only(key string) ([]int64, error) {
	if !plans.ValidCustomerKey(key) {
		return nil, problem.Invalid("customer", plans.CustomerKeyRule)
	}
	c, err := x.server.store.GetCustomer(x.ctx, key)
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

// fullest are the customers of the plan with the most units on the draft's meters.
func (x *comparison) fullest() (ids []int64, others bool, err error) {
	meters, err := x.server.store.MeterIDs(x.ctx, x.draft.MeterKeys())
	if err != nil {
		return nil, false, err
	}
	var numbers []int32
	for _, id := range meters {
		numbers = append(numbers, id)
	}
	most := compareFrom / max(1, len(numbers))
	if ids, others, err = x.server.store.CustomersOn(x.ctx, x.draft.Key, most); err != nil {
		return nil, false, err
	}
	fullest, err := x.server.engine.Fullest(x.ctx, ids, numbers, compareMost)
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
	hours, full, err := x.server.engine.Past(x.ctx, who, what, from, x.sheet.To, compareHours)
	if err == nil && full {
		err = problem.Invalid("", "there is more usage than one comparison may read: name a customer, or fewer meters in the draft")
	}
	if err != nil {
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

func pastHours(from []quota.UsageHour) []compare.Hour {
	hours := make([]compare.Hour, len(from))
	for i, h := range from {
		hours[i] = compare.Hour(h)
	}
	return hours
}

// compared is a customer that is compared.
type compared struct {
	compare.Customer
	id   int64
	plan *plans.Plan // in force
}

// read reads customers and what they have of their own.
func (x *comparison) read(ids []int64) ([]*compared, error) {
	store := x.server.store
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

// show is the comparison as it is answered.
func (x *comparison) show(chosen int, others bool) *compareBody {
	s := x.sheet
	body := &compareBody{
		From: timeOf(s.From), To: timeOf(s.To), Customers: s.Customers, Chosen: chosen, Others: others, Asked: s.Asked, Recorded: s.Recorded,
		Currency: x.draft.Currency, InForce: showSide(&s.InForce), Draft: showSide(&s.Draft), Limits: make([]compareRow, len(s.Limits)), Notes: x.notes(chosen, others),
	}
	for i := range s.Limits {
		row := &s.Limits[i]
		body.Limits[i] = compareRow{row.Meter, row.Name, showCell(row.InForce), showCell(row.Draft)}
	}
	return body
}

func showSide(s *compare.Side) compareSide {
	shown := compareSide{Refused: compareRange(s.Refused), Customers: compareRange(s.Customers)}
	if !s.TooLarge {
		billed := compareRange(s.Billed)
		shown.Billed = &billed
	}
	return shown
}

func showCell(c *compare.Cell) *compareCell {
	if c == nil {
		return nil
	}
	return &compareCell{c.How, compareRange(c.Refused), compareRange(c.Customers)}
}

// notes say what the numbers leave open.
func (x *comparison) notes(chosen int, others bool) []compareNote {
	notes := []compareNote{
		{"retries", "Refused units count every retry. So what the draft would admit in addition is at most what stands here."},
		{"billed", "Each billing period that these 30 days touch is priced as if it were cut to them, and as if what the plan admits had been used. Trials, taxes and credits are left out."},
	}
	if x.sheet.Customers < chosen {
		notes = append(notes, compareNote{"time", fmt.Sprintf("The time sufficed for %d of %d customers.", x.sheet.Customers, chosen)})
	}
	if others {
		notes = append(notes, compareNote{"others", "Other customers are on the plan, too: those with fewer units, and beyond a bound any. They are left out."})
	}
	for _, row := range x.sheet.Limits {
		for _, cell := range []*compare.Cell{row.InForce, row.Draft} {
			if cell == nil {
				continue
			}
			text := howNotes[cell.How]
			if text != "" && !slices.ContainsFunc(notes, func(n compareNote) bool { return n.Name == string(cell.How) }) {
				notes = append(notes, compareNote{string(cell.How), text})
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
