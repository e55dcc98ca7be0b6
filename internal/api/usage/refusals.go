package usage

import (
	"math"
	"strconv"
	"strings"

	"quotad/client"
	"quotad/internal/api/apidoc"
	"quotad/internal/api/problem"
	"quotad/internal/api/respond"
	"quotad/internal/api/serve"
	"quotad/internal/plans"
	"quotad/internal/plans/store"
	"quotad/internal/quota"
)

// periodAt returns a refusal period's position in the list.
func periodAt(s quota.RefusalPeriod) string {
	return strconv.FormatInt(s.From, 10) + "/" + strconv.FormatInt(int64(s.Meter), 10) + "/" + s.Limit
}

func readPeriodAt(text string) (s quota.RefusalPeriod, ok bool) {
	parts := strings.SplitN(text, "/", 3)
	if len(parts) < 3 || !plans.ValidKey(parts[2]) {
		return s, false
	}
	from, badFrom := strconv.ParseInt(parts[0], 10, 64)
	meter, badMeter := strconv.ParseInt(parts[1], 10, 32)
	s = quota.RefusalPeriod{From: from, Meter: int32(meter), Limit: parts[2]}
	return s, badFrom == nil && badMeter == nil && from > math.MinInt64 && periodAt(s) == text
}

// refusals serves GET /v1/customers/{key}/refusals.
func (s *Room) refusals(c *serve.Call) (*plans.List[client.RefusalPeriod], error) {
	kind := "refusals/" + c.Key // the list of another customer rejects the cursors
	limit, position, err := store.OpenPage(c.Query.Page(), kind, func(text string) bool {
		_, ok := readPeriodAt(text)
		return ok
	})
	if err != nil {
		return nil, err
	}
	f, err := s.refusalFilter(c)
	if err != nil {
		return nil, err
	}
	if f.Most = limit + 1; position != "" {
		after, _ := readPeriodAt(position)
		f.After = &after
	}
	found, err := s.Engine.RefusalPeriods(c.Ctx(), f)
	if err != nil {
		return nil, err
	}
	var ids []int32
	for i := range found {
		ids = append(ids, found[i].Meter)
	}
	meters, err := s.Store.MeterKeys(c.Ctx(), ids)
	return serve.Shown(store.Paged(found, limit, kind, periodAt), func(s quota.RefusalPeriod) client.RefusalPeriod {
		return client.RefusalPeriod{
			Limit: s.Limit, Meter: meters[s.Meter], From: respond.Time(s.From), To: respond.Time(s.To), Units: s.Units,
			AdmittedAt: respond.InstantOrNull(s.Admits),
		}
	}), err
}

// refusalFilter returns the filter of a request. Like usage, refusals remain when a customer is archived or its
// plan loses the meter.
func (s *Room) refusalFilter(c *serve.Call) (f quota.RefusalFilter, err error) {
	if f.From, err = c.Query.Instant("from", math.MinInt64); err != nil {
		return f, err
	}
	if f.To, err = c.Query.Instant("to", math.MaxInt64); err != nil {
		return f, err
	}
	if f.To <= f.From {
		return f, problem.Invalid("to", "must be after from")
	}
	customer, err := s.Store.GetCustomer(c.Ctx(), c.Key)
	if err != nil {
		return f, err
	}
	f.Customer = customer.ID
	if _, given := c.Query["meter"]; given {
		name, err := meterOf(c.Query)
		if err != nil {
			return f, err
		}
		meter, err := s.Store.GetMeter(c.Ctx(), name)
		if err != nil {
			return f, err
		}
		f.Meter = meter.ID
	}
	return f, nil
}

var refusalParams = []apidoc.Param{
	{Name: "meter", Type: "string", Doc: "The meter's key. All meters when left out."},
	{Name: "from", Type: "date-time", Doc: "Hits that were refused then or later, by the customer's clock."},
	{Name: "to", Type: "date-time", Doc: "Hits that were refused before."},
}

func (s *Room) refusalRoute() serve.Route {
	return serve.List(apidoc.Readers, "/v1/customers/{key}/refusals", "refusals.list", "When limits refused a customer's hits", s.refusals, serve.Same).
		Takes(refusalParams...).Fails(problem.KindNotFound)
}
