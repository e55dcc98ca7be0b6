package service

import (
	"strconv"
	"strings"

	"quotad/internal/api/apidoc"
	"quotad/internal/api/problem"
	"quotad/internal/api/request"
	"quotad/internal/api/serve"
	"quotad/internal/events"
	"quotad/internal/plans"
	"quotad/internal/plans/store"
)

// eventFilter parses the filter of events in a query.
func eventFilter(q request.Query) (f store.EventFilter, err error) {
	if text, given := q["after"]; given {
		f.After, err = strconv.ParseInt(text, 10, 64)
		if err != nil || f.After < 0 || strconv.FormatInt(f.After, 10) != text {
			return f, problem.Invalid("after", "must be the id of an event, such as 4711, or 0 for all: send the last id that you have")
		}
	}
	if text, given := q["type"]; given {
		if f.Type = text; !events.Known(text) {
			return f, problem.Invalid("type", "is no type of events: it is one of "+strings.Join(events.Types, ", "))
		}
	}
	if text, given := q["customer"]; given {
		if f.Customer = text; !plans.ValidCustomerKey(text) {
			return f, problem.Invalid("customer", "must be the key of a customer: leave it out for the events of all")
		}
	}
	return f, nil
}

func (s *Room) listEvents(c *serve.Call) (*plans.List[events.Shown], error) {
	f, err := eventFilter(c.Query)
	if err != nil {
		return nil, err
	}
	return s.Store.Events(c.Ctx(), f, c.Query.Page())
}

var eventParams = []apidoc.Param{
	{Name: "after", Type: "integer", Doc: "Events with a higher id only: send the last one that you have."},
	{Name: "type", Type: "string", Doc: "Events of this type only.", Enum: events.Types},
	{Name: "customer", Type: "string", Doc: "Events of this customer only, by its key as it is now."},
}

func (s *Room) eventRoutes() []serve.Route {
	return serve.Tagged("Events",
		serve.List(apidoc.Readers, "/v1/events", "events.list", "List what happened", s.listEvents, events.Shown.Show).
			Takes(eventParams...).Fails(problem.KindNotFound))
}
