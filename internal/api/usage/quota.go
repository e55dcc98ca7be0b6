package usage

import (
	"context"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/jackc/pgx/v5"

	"quotad/client"
	"quotad/internal/api/respond"
	"quotad/internal/api/serve"
	"quotad/internal/billing/invoices"
	"quotad/internal/plans/catalog"
	"quotad/internal/quota"
	"quotad/internal/quota/model"
)

// quotaBody is a client.Quota whose limits are encoded by the same code as in responses to hits.
type quotaBody struct {
	Customer    string                  `json:"customer"`
	Plan        string                  `json:"plan"`
	PlanVersion int                     `json:"plan_version"`
	At          time.Time               `json:"at"`
	TestClock   string                  `json:"test_clock,omitempty"`
	Anonymous   bool                    `json:"anonymous,omitzero"`
	Suspension  *client.Suspension      `json:"suspension,omitempty"`
	Scheduled   *client.ScheduledChange `json:"scheduled_change,omitempty"`
	EndsAt      *time.Time              `json:"ends_at,omitempty"`
	Ended       bool                    `json:"ended,omitzero"`
	Features    map[string]any          `json:"features"`
	Limits      limitList               `json:"limits"`
	Meters      []client.MeterUsage     `json:"meters"`
}

// standing is the state of one meter of a customer's plan.
type standing struct {
	catalog.MeterTarget
	quota.Standing
}

func (s *Room) quota(c *serve.Call) (body quotaBody, err error) {
	attributes, err := c.Query.Attributes()
	if err != nil {
		return body, err
	}
	err = catalog.WhileStale(func(atLeast int64) (err error) {
		if err = s.Catalog.CatchUp(c.Ctx(), atLeast); err == nil {
			body, err = s.readQuota(c.Ctx(), c.Key, attributes)
		}
		return err
	})
	return body, err
}

// readQuota reads the states of all meters of the customer's plan at one instant. attributes select the buckets
// of limits per attribute.
func (s *Room) readQuota(ctx context.Context, key string, attributes map[string]string) (body quotaBody, err error) {
	account, err := s.Catalog.Meters(ctx, key)
	if err != nil {
		return body, err
	}
	for i := range account.Meters {
		m := &account.Meters[i]
		m.Target = m.Target.For(attributes).ForReservations()
	}
	// As for an invoice, the states, the units and their prices are read at one instant.
	err = s.Invoices.Reading(ctx, key, func(ctx context.Context, running *invoices.Running) error {
		body, err = s.showQuota(ctx, key, account, running)
		return err
	})
	body.Limits.over = ctx.Err
	return body, err
}

// showQuota returns the quota response for the data that is stored at one instant.
func (s *Room) showQuota(ctx context.Context, key string, account *catalog.Account, running *invoices.Running) (body quotaBody, err error) {
	for i := range account.Meters {
		if running.Change > account.Meters[i].Target.Change {
			return body, &model.StaleError{Change: running.Change}
		}
	}
	standings, now, err := s.standings(ctx, &running.View, account)
	if err != nil {
		return body, err
	}
	plan := account.Plan
	body = quotaBody{
		Customer: key, Plan: plan.Key, PlanVersion: plan.Version, At: respond.Time(now), Anonymous: account.Anonymous, Features: plan.Features,
		Limits: limitList{standings: standings}, Meters: make([]client.MeterUsage, len(standings)),
	}
	if account.Clock != nil {
		body.TestClock = account.Clock.Key
	}
	body.Suspension = (*client.Suspension)(account.Suspension)
	body.Scheduled = (*client.ScheduledChange)(account.Scheduled)
	body.EndsAt, body.Ended = respond.InstantOrNull(account.EndsAt), account.EndsAt != nil && *account.EndsAt <= now
	for i := range standings {
		if body.Meters[i], err = standings[i].usage(ctx, plan.Currency, running); err != nil {
			return body, err
		}
	}
	return body, nil
}

// standings reads the counters of all meters in a view. now is the view's instant by the customer's clock.
func (s *Room) standings(ctx context.Context, v *quota.View, account *catalog.Account) (all []standing, now int64, err error) {
	if now = v.Now; account.Clock != nil {
		now = account.Clock.Now
	}
	if len(account.Meters) == 0 {
		return nil, now, nil
	}
	targets := make([]*model.Target, len(account.Meters))
	for i := range targets {
		targets[i] = account.Meters[i].Target
	}
	read, err := s.Engine.StandingsIn(ctx, v, targets)
	if err != nil {
		return nil, 0, err
	}
	all = make([]standing, len(read))
	for i := range all {
		all[i] = standing{account.Meters[i], read[i]}
	}
	return all, now, nil
}

// usage returns the meter's usage of the running period, and the amount that an invoice would contain for it.
func (st *standing) usage(ctx context.Context, currency string, running *invoices.Running) (client.MeterUsage, error) {
	u := client.MeterUsage{
		Meter: st.Meter.Key, Unit: st.Meter.Unit, Currency: currency, Kind: st.Meter.Kind(), Used: st.PeriodUsed,
		PeriodStart: respond.Time(st.PeriodStart), PeriodEnd: respond.Time(st.PeriodEnd),
	}
	if st.Price != nil {
		u.Included = st.Price.Included
	}
	if st.Cap != nil {
		u.CapMinor = &st.Cap.AmountMinor
	}
	u.Overage = max(0, u.Used-u.Included)
	if !running.Billed() {
		return u, nil
	}
	version := running.Version()
	u.PriceVersion, u.Currency = &version, running.Currency()
	held, err := running.Held(ctx, st.Target.Counters[0].Key)
	if err == nil {
		u.Included, u.Overage, u.AmountMinor, err = running.Meter(st.Meter, u.Used, held)
	}
	return u, err
}

// limitList is the member limits of the quota response. Each limit has the members of a limit in a decision, and
// its meter.
type limitList struct {
	standings []standing
	over      func() error // returns why nobody waits for the list any more, or nil
}

// MarshalJSONTo implements jsonv2's MarshalerTo with the same code as in responses to hits.
func (l limitList) MarshalJSONTo(e *jsontext.Encoder) error {
	b := []byte{'['}
	for i := range l.standings {
		if err := l.over(); err != nil {
			return err
		}
		st := &l.standings[i]
		for i, v := range respond.AppendViews(nil, &st.Decision) {
			if len(b) > 1 {
				b = append(b, ',')
			}
			b = respond.AppendView(b, &v)
			b = append(b, `,"window_start":`...)
			if start, runs := st.WindowStart(i); runs {
				b = respond.AppendTime(b, start)
			} else {
				b = append(b, "null"...)
			}
			b = append(b, `,"meter":`...)
			b = respond.AppendString(b, st.Meter.Key)
			b = append(b, `,"reserved":`...)
			b = append(strconv.AppendInt(b, v.Reserved, 10), '}')
		}
	}
	return e.WriteValue(append(b, ']'))
}

// LimitsIn returns the limits of a customer as a transaction sees them, in the form of the quota response. It
// reads no attributes, so limits per attribute show the bucket of the empty value. over returns the reason why
// nobody waits for the response any more, or nil.
func (s *Room) LimitsIn(ctx context.Context, tx pgx.Tx, key string, over func() error) (json.MarshalerTo, error) {
	standings, err := s.standingsIn(ctx, tx, key)
	return limitList{standings, over}, err
}

func (s *Room) standingsIn(ctx context.Context, tx pgx.Tx, key string) ([]standing, error) {
	account, err := s.Catalog.MetersIn(ctx, tx, key)
	if err != nil {
		return nil, err
	}
	for i := range account.Meters {
		m := &account.Meters[i]
		m.Target = m.Target.For(nil).ForReservations()
	}
	now, err := s.Now(ctx)
	if err != nil {
		return nil, err
	}
	standings, _, err := s.standings(ctx, &quota.View{From: tx, Now: now}, account)
	return standings, err
}

// LeftIn returns, by meter, the units that a customer may still use before an instant, µs. The bounds are the
// customer's cap and every hard limit whose window does not end before the instant. Units in open reservations
// may be used, too. Limits per attribute are ignored, and a meter without a bound is left out.
func (s *Room) LeftIn(ctx context.Context, tx pgx.Tx, key string, end int64) (map[string]int64, error) {
	standings, err := s.standingsIn(ctx, tx, key)
	left := make(map[string]int64)
	for i := range standings {
		st := &standings[i]
		for n := range st.NumViews() {
			v := st.View(n)
			if v.Limit.Mode != model.Hard || v.Limit.Algorithm != model.FixedWindow || v.Limit.Per != "" || v.ResetAt < end {
				continue
			}
			most := v.Remaining + v.Reserved
			if so, bound := left[st.Meter.Key]; !bound || most < so {
				left[st.Meter.Key] = most
			}
		}
	}
	return left, err
}
