package usage

import (
	"context"
	"slices"
	"time"

	"quotad/client"
	"quotad/internal/api/apidoc"
	"quotad/internal/api/problem"
	"quotad/internal/api/request"
	"quotad/internal/api/respond"
	"quotad/internal/api/serve"
	"quotad/internal/calendar"
	"quotad/internal/plans"
	"quotad/internal/quota"
	"quotad/internal/quota/model"
)

const (
	// MaxPoints is the maximum number of usage points in a response.
	MaxPoints = 10_000
	// MaxHours is the maximum number of hours with usage that one request may read, which is 22 years of hours.
	MaxHours = 200_000
)

var usageParams = []apidoc.Param{
	{Name: "meter", Type: "string", Doc: "The meter's key.", Required: true},
	{Name: "from", Type: "date-time", Doc: "Start of the range, RFC 3339. When left out, the start of the present month by the customer's clock."},
	{Name: "to", Type: "date-time", Doc: "End of the range, not included, RFC 3339. When left out, now by the customer's clock."},
	{Name: "granularity", Type: "string", Doc: "How long a point is. `day` when left out.", Enum: []string{"hour", "day", "month"}},
}

// span is the time span of a usage request, [from, to) µs.
type span struct {
	from, to int64
	bucket   func(at int64, loc *time.Location) (start, end int64)
}

func (s *Room) usage(c *serve.Call) (body client.Usage, err error) {
	name, err := meterOf(c.Query)
	if err != nil {
		return body, err
	}
	// The customer is read from the store and not from the catalog, because usage remains when a customer is
	// archived or its plan loses the meter.
	customer, err := s.Store.GetCustomer(c.Ctx(), c.Key)
	if err != nil {
		return body, err
	}
	meter, err := s.Store.GetMeter(c.Ctx(), name)
	if err != nil {
		return body, err
	}
	p, err := s.periods(c.Ctx(), customer)
	if err != nil {
		return body, err
	}
	now, err := s.InstantOf(c.Ctx(), customer.Clock)
	if err != nil {
		return body, err
	}
	asked, err := spanOf(c.Query, now, p.Zone)
	if err != nil {
		return body, err
	}
	starts, fits := bucketStarts(asked, p.Zone)
	if !fits {
		return body, problem.Invalid("granularity", "would give more than 10,000 points: ask for a shorter time or larger steps")
	}
	if customer.Clock != nil {
		body.TestClock = customer.Clock.Key
	}
	if meter.Kind() == plans.KindLevel {
		levels, err := s.Invoices.Levels(c.Ctx(), customer.ID, meter.ID, starts, now)
		for i := range levels {
			body.Points = append(body.Points, respond.LevelPoint(starts[i], &levels[i]))
		}
		return body, err
	}
	first, _ := p.Hour(asked.from)
	hours, err := s.Engine.Usage(c.Ctx(), customer.ID, meter.ID, first, asked.to, MaxHours+1)
	if err != nil {
		return body, err
	}
	if len(hours) > MaxHours {
		return body, problem.Invalid("from", "there is more usage than one answer may read: ask for a shorter time")
	}
	archive, err := s.Engine.Archive(c.Ctx())
	if err != nil {
		return body, err
	}
	body.Points = bucketUsage(hours, starts)
	if first < archive.GoneBefore {
		body.ArchivedBefore = new(respond.Time(archive.GoneBefore))
		body.Points = slices.DeleteFunc(body.Points, func(p client.UsagePoint) bool { return p.Start.Before(*body.ArchivedBefore) })
	}
	return body, nil
}

func meterOf(q request.Query) (string, error) {
	meter, given := q["meter"]
	switch {
	case !given:
		return "", problem.Invalid("meter", "is required")
	case !plans.ValidKey(meter):
		return "", problem.Invalid("meter", plans.KeyRule)
	}
	return meter, nil
}

// spanOf parses from, to and granularity.
func spanOf(q request.Query, now int64, zone *time.Location) (asked span, err error) {
	monthStart, _ := calendar.Month(now, zone)
	if asked.from, err = q.Instant("from", monthStart); err != nil {
		return asked, err
	}
	// The running hour starts at or before now, so one additional µs includes it.
	if asked.to, err = q.Instant("to", now+1); err != nil {
		return asked, err
	}
	if asked.from >= asked.to {
		return asked, problem.Invalid("from", "must be before to")
	}
	switch q["granularity"] {
	case "hour":
		asked.bucket = calendar.Hour
	case "day":
		asked.bucket = calendar.Day
	case "month":
		asked.bucket = calendar.Month
	case "":
		if _, given := q["granularity"]; !given {
			asked.bucket = calendar.Day
			return asked, nil
		}
		fallthrough
	default:
		return asked, problem.Invalid("granularity", "must be hour, day or month")
	}
	return asked, nil
}

// bucketStarts returns the starts of all hours, days or months that overlap the span, and the end of the last
// one. It returns false if there are more than MaxPoints.
func bucketStarts(asked span, zone *time.Location) ([]int64, bool) {
	start, end := asked.bucket(asked.from, zone)
	starts := []int64{start}
	for end < asked.to {
		if len(starts) == MaxPoints {
			return nil, false
		}
		starts = append(starts, end)
		_, next := asked.bucket(end, zone)
		if next <= end {
			break // the last instant that calendars support
		}
		end = next
	}
	return append(starts, end), true
}

// bucketUsage sums ascending hours into the buckets in which they start.
func bucketUsage(hours []quota.UsageHour, starts []int64) []client.UsagePoint {
	points := make([]client.UsagePoint, len(starts)-1)
	for i := range points {
		p := &points[i]
		p.UsageUnits = new(client.UsageUnits)
		p.Start = time.UnixMicro(starts[i]).UTC()
		for len(hours) > 0 && hours[0].Start < starts[i+1] {
			p.Admitted = model.AddUpTo(p.Admitted, hours[0].Admitted)
			p.Denied = model.AddUpTo(p.Denied, hours[0].Denied)
			hours = hours[1:]
		}
	}
	return points
}

// periods returns the starts of a customer's hours and billing periods.
func (s *Room) periods(ctx context.Context, c *plans.Customer) (calendar.Periods, error) {
	plan, err := s.Store.GetPlanVersion(ctx, c.Plan, c.EffectiveVersion)
	if err != nil {
		return calendar.Periods{}, err
	}
	return c.Periods(plan)
}

// Routes returns the routes of remaining quota and usage. A nil Room only describes the routes.
func (s *Room) Routes() []serve.Route {
	return serve.Tagged("Backends",
		serve.Get(apidoc.EveryScope, "/v1/customers/{key}/quota", "quota.get", "What a customer has left", s.quota, serve.Same).
			Described(nil, client.Quota{}).Takes(request.AttributeParam).Fails(problem.KindNotFound),
		serve.Get(apidoc.EveryScope, "/v1/customers/{key}/usage", "usage.get", "What a customer used", s.usage, serve.Same).
			Takes(usageParams...).Fails(problem.KindNotFound),
	)
}
