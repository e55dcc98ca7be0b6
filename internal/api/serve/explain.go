package serve

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"quotad/internal/api/request"
	"quotad/internal/plans"
	"quotad/internal/quota/locked"
)

// Names are the things that a request names, for the texts of errors. Each has been checked:
// it is printable and has at most 200 bytes. A thing that the request does not name is empty.
type Names struct {
	Customer, Meter, plan, version, key, Limit, clock string

	Hit                 string // the id of the hit that a refund is for
	Committed, Released string // ids of reservations
}

// namesOf are the names in the path and the query of an ordinary route.
func namesOf(c *Call, rt *Route) (n Names) {
	key, _ := request.PathValue(c.R, "key") // the handler has refused a bad key
	switch {
	case strings.HasPrefix(rt.Pattern, "/v1/customers/{key}"):
		n.Customer, n.Meter = key, c.Query["meter"]
		n.Limit, _ = request.PathValue(c.R, "limit")
	case strings.HasPrefix(rt.Pattern, "/v1/meters/{key}"):
		n.Meter = key
	case strings.HasPrefix(rt.Pattern, "/v1/plans/{key}"):
		n.plan = key
		n.version, _ = request.PathValue(c.R, "n")
	case strings.HasPrefix(rt.Pattern, "/v1/test-clocks/{key}"):
		n.clock = key
	case rt.Pattern == "/v1/keys/{id}":
		n.key, _ = request.PathValue(c.R, "id")
	}
	return n
}

// explained is an error of the table whose text says what to do next.
type explained struct {
	error
	text string
}

func (e *explained) Error() string { return e.text }
func (e *explained) Unwrap() error { return e.error }

// Explain adds to an error which thing is missing or in the way, and the next call to make. An
// error that concerns nothing in n stays as it is.
func Explain(err error, n Names) error {
	if _, done := errors.AsType[*explained](err); done {
		return err
	}
	if why, ok := errors.AsType[*plans.NoDefaultPlanError](err); ok && n.Customer != "" {
		return &explained{err, fmt.Sprintf("there is no customer %s, and it cannot be made at this hit: %s", quoted(n.Customer), why)}
	}
	if present, ok := errors.AsType[*plans.IfMatchError](err); ok {
		return &explained{err, "it exists already: GET it, look at what would be overwritten, and send the ETag of that answer in the header If-Match. Now it is If-Match: " + request.QuoteETag(present.ETag)}
	}
	for _, x := range []struct {
		err    error
		name   string // what it is about
		format string // of its quoted name and its path
	}{
		{plans.ErrUnknownCustomer, n.Customer, "there is no customer %s, or it is archived for good: a new one is made with PUT /v1/customers/%s"},
		{plans.ErrArchived, n.Customer, "the customer %s is archived and cannot be written any more: make another under a new key (GET /v1/customers/%s still shows it)"},
		{plans.ErrUnknownMeter, n.Meter, "there is no meter %s: declare it with PUT /v1/meters/%s"},
		{plans.ErrUnknownClock, n.clock, "there is no test clock %s: make it with PUT /v1/test-clocks/%s"},
		{plans.ErrUnknownDraft, n.plan, "the plan %s has no draft: store one with PUT /v1/plans/%s/draft"},
		{plans.ErrUnknownPlan, n.plan, "there is no plan %s: write it with PUT /v1/plans/%s"},
	} {
		if x.name != "" && errors.Is(err, x.err) {
			return &explained{err, fmt.Sprintf(x.format, quoted(x.name), inPath(x.name))}
		}
	}
	text := ""
	switch {
	case errors.Is(err, plans.ErrUnknownOverride) && n.Limit != "":
		text = fmt.Sprintf("the customer %s has no override of a limit %s: GET /v1/customers/%s/overrides lists them",
			quoted(n.Customer), quoted(n.Limit), inPath(n.Customer))
	case errors.Is(err, plans.ErrUnknownKey) && n.key != "":
		text = fmt.Sprintf("there is no key %s: GET /v1/keys lists them", quoted(n.key))
	case errors.Is(err, plans.ErrUnknownVersion) && n.plan != "":
		text = fmt.Sprintf("the plan %s has no version %s: GET /v1/plans/%s/versions lists them", quoted(n.plan), n.version, inPath(n.plan))
	case (errors.Is(err, plans.ErrNotInPlan) || errors.Is(err, locked.ErrLost)) && n.Meter != "":
		text = fmt.Sprintf("the plan of customer %s does not include the meter %s: name it in that plan's limits, prices or meters (GET /v1/customers/%s says which plan)",
			quoted(n.Customer), quoted(n.Meter), inPath(n.Customer))
	case errors.Is(err, plans.ErrPrecondition):
		text = "If-Match is not its present ETag: it changed in the meantime, or does not exist. GET it again and send its ETag"
	case errors.Is(err, plans.ErrExists):
		text = "If-None-Match: * writes only what is not there yet, and it exists already. To replace it, GET it and send its ETag in If-Match"
	default:
		text = explainOperation(err, n)
	}
	if text == "" {
		return err
	}
	return &explained{err, text}
}

// explainOperation explains errors of refunds, reservations and imports. It is empty for other
// errors.
func explainOperation(err error, n Names) string {
	switch {
	case errors.Is(err, locked.ErrUnknownHit) && n.Hit != "":
		return fmt.Sprintf("the customer %s has no admitted hit with the id %s on the meter %s, or its id is no longer kept: leave hit out to give back to the present windows. Nothing was given back",
			quoted(n.Customer), quoted(n.Hit), quoted(n.Meter))
	case errors.Is(err, locked.ErrNoSuchLimit) && n.Limit != "":
		return fmt.Sprintf("the plan of customer %s has no limit %s on the meter %s, or it is one of concurrency, which has no opening balance: GET /v1/customers/%s/quota lists its limits",
			quoted(n.Customer), quoted(n.Limit), quoted(n.Meter), inPath(n.Customer))
	case errors.Is(err, locked.ErrUnknownReservation):
		return fmt.Sprintf("there is no reservation %s, or it is no longer kept, or its customer is archived: send the id that POST /v1/reservations answered. What was used without a reservation is charged by POST /v1/hits. Nothing was done",
			quoted(cmp.Or(n.Committed, n.Released)))
	case errors.Is(err, locked.ErrSettled) && n.Committed+n.Released != "":
		return explainSettled(err, quoted(cmp.Or(n.Committed, n.Released)))
	}
	return ""
}

// explainSettled says whether a reservation was committed or released, and how to correct the
// difference.
func explainSettled(err error, id string) string {
	if before, ok := errors.AsType[*locked.SettledError](err); ok && before.Committed {
		return fmt.Sprintf("the reservation %s was committed with %d before: charge what is missing by POST /v1/hits, or give back what is too much by POST /v1/refunds without hit. Nothing was done", id, before.Cost)
	}
	return fmt.Sprintf("the reservation %s was released before, and nothing of it is booked: charge what was used by POST /v1/hits. Nothing was done", id)
}

// quoted shows a name, cut to what an error may repeat.
func quoted(name string) string { return strconv.Quote(plans.Shorten(name)) }

// inPath is a name, escaped, for the path of the next call. A name that is too long for an
// error becomes {key}.
func inPath(name string) string {
	if plans.Shorten(name) != name {
		return "{key}"
	}
	return url.PathEscape(name)
}
