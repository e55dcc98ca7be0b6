package usage

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"quotad/client"
	"quotad/internal/api/apidoc"
	"quotad/internal/api/problem"
	"quotad/internal/api/request"
	"quotad/internal/api/respond"
	"quotad/internal/api/serve"
	"quotad/internal/plans"
	"quotad/internal/plans/store"
	"quotad/internal/quota"
	"quotad/internal/quota/locked"
	"quotad/internal/quota/model"
)

// openAt returns a reservation's position in the list.
func openAt(o quota.OpenReservation) string {
	return strconv.FormatInt(o.Expires, 10) + "/" + o.ID.String()
}

func readOpenAt(text string) (o quota.OpenReservation, ok bool) {
	expires, id, _ := strings.Cut(text, "/")
	o.Expires, _ = strconv.ParseInt(expires, 10, 64)
	o.ID, ok = locked.ParseReservationID(id)
	return o, ok && openAt(o) == text
}

// openReservations serves GET /v1/customers/{key}/reservations.
func (s *Room) openReservations(c *serve.Call) (*plans.List[client.OpenReservation], error) {
	kind := "reservations/" + c.Key // the list of another customer rejects the cursors
	limit, position, err := store.OpenPage(c.Query.Page(), kind, func(text string) bool {
		_, ok := readOpenAt(text)
		return ok
	})
	if err != nil {
		return nil, err
	}
	f, clock, err := s.openFilter(c)
	if err != nil {
		return nil, err
	}
	if f.Most = limit + 1; position != "" {
		after, _ := readOpenAt(position)
		f.After = &after
	}
	found, err := s.Engine.Open(c.Ctx(), f)
	if err != nil {
		return nil, err
	}
	meters, err := s.metersOf(c, &f, found)
	return serve.Shown(store.Paged(found, limit, kind, openAt), func(o quota.OpenReservation) client.OpenReservation {
		body := client.OpenReservation{
			ID: o.ID.String(), Meter: meters[o.ID.Meter], Cost: o.Cost, Attributes: o.Attributes,
			CreatedAt: respond.Time(o.At), ExpiresAt: respond.Time(o.Expires), TestClock: clock,
		}
		if body.Attributes == nil {
			body.Attributes = map[string]string{}
		}
		return body
	}), err
}

// metersOf returns the meter keys of reservations, by meter id.
func (s *Room) metersOf(c *serve.Call, f *quota.OpenFilter, found []quota.OpenReservation) (map[int32]string, error) {
	if f.Meter != 0 {
		return map[int32]string{f.Meter: c.Query["meter"]}, nil
	}
	ids := make(map[int32]bool)
	for i := range found {
		ids[found[i].ID.Meter] = true
	}
	return s.Store.MeterKeys(c.Ctx(), slices.Collect(maps.Keys(ids)))
}

// openFilter returns the filter of a request. It reads the customer and its clock from the database, because a
// node that has not yet seen a test clock's new time must not show reservations that have expired by it.
func (s *Room) openFilter(c *serve.Call) (f quota.OpenFilter, clock string, err error) {
	if f.Attribute, err = oneAttribute(c.Query); err != nil {
		return f, "", err
	}
	customer, err := s.Store.GetCustomer(c.Ctx(), c.Key)
	if err != nil {
		return f, "", err
	}
	if customer.ArchivedAt != nil {
		return f, "", plans.ErrUnknownCustomer
	}
	if customer.Clock != nil {
		clock = customer.Clock.Key
	}
	f.Customer = customer.ID
	if f.Now, err = s.InstantOf(c.Ctx(), customer.Clock); err != nil {
		return f, "", err
	}
	if _, given := c.Query["meter"]; given {
		name, err := meterOf(c.Query)
		if err != nil {
			return f, "", err
		}
		meter, err := s.Store.GetMeter(c.Ctx(), name)
		if err != nil {
			return f, "", err
		}
		f.Meter = meter.ID
	}
	return f, clock, nil
}

// oneAttribute returns the stored counter key of the single attribute value in a request, or an empty string if
// the request names no attribute.
func oneAttribute(q request.Query) (string, error) {
	given, err := q.Attributes()
	if err != nil {
		return "", err
	}
	names := slices.Sorted(maps.Keys(given))
	switch len(names) {
	case 0:
		return "", nil
	case 1:
		return model.AttributeKey(names[0], given[names[0]]), nil
	}
	return "", problem.Invalid("attr."+names[1], "is a second attribute: ask for one at a time")
}

func (s *Room) openReservationsRoute() serve.Route {
	return serve.List(apidoc.EveryScope, "/v1/customers/{key}/reservations", "reservations.list", "List a customer's open reservations",
		s.openReservations, serve.Same).Fails(problem.KindNotFound).Takes(
		apidoc.Param{Name: "meter", Type: "string", Doc: "The meter's key. All meters when left out."},
		apidoc.Param{
			Name: request.AttributeParam.Name, Names: request.AttributeParam.Names, Type: "string",
			Doc: "The value of the attribute NAME, such as `attr.ip=192.0.2.1`. Only reservations that hold units of the limits of this value are listed. At most one attribute may be given.",
		},
	)
}
