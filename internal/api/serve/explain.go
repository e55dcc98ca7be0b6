package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"quotad/internal/api/problem"
	"quotad/internal/api/request"
	"quotad/internal/api/respond"
	"quotad/internal/plans"
	"quotad/internal/quota/locked"
	"quotad/internal/quota/session"
)

// Names are the things that a request names, for the texts of errors. Each has been checked:
// it is printable and has at most 200 bytes. A thing that the request does not name is empty.
type Names struct {
	Customer, Meter, plan, key, Limit, clock string

	version             int    // of the plan
	Hit                 string // the id of the hit that a refund is for
	Committed, Released string // ids of reservations
}

// namesOf are the names in the path and the query of a typed route.
func namesOf(c *Call) (n Names) {
	of := func(prefix string) bool { return strings.HasPrefix(c.route.Pattern, prefix) }
	switch {
	case of("/v1/customers/{key}"):
		n.Customer, n.Meter, n.Limit = c.Key, c.Query["meter"], c.Limit
	case of("/v1/meters/{key}"):
		n.Meter = c.Key
	case of("/v1/plans/{key}"):
		n.plan, n.version = c.Key, c.N
	case of("/v1/test-clocks/{key}"):
		n.clock = c.Key
	case of("/v1/keys/{id}"):
		n.key = c.ID
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
		{
			plans.ErrArchived, n.Customer,
			"the customer %s is archived and cannot be written any more: make another under a new key (GET /v1/customers/%s still shows it)",
		},
		{
			plans.ErrSuspended, n.Customer,
			"the customer %s is suspended: GET /v1/customers/%s says since when and why, and DELETE of its suspension ends it. Nothing was charged",
		},
		{plans.ErrEnded, n.Customer, "the subscription of customer %s has ended: GET /v1/customers/%s/billing says when (ends_at). Nothing was charged"},
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
		text = fmt.Sprintf("the plan %s has no version %d: GET /v1/plans/%s/versions lists them", quoted(n.plan), n.version, inPath(n.plan))
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
		return fmt.Sprintf("the reservation %s was committed with %d before: charge what is missing by POST /v1/hits, or give back what is too much by POST /v1/refunds without hit. Nothing was done",
			id, before.Cost)
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

// OutOfTime is what an error means that came when its request's time was over: that the request
// waited too long, and never that the database is out of reach. on_outage lets nothing in by it.
// A database that is known to be too slow is out of reach.
func OutOfTime(ctx context.Context, err error) error {
	if ctx.Err() == nil || !errors.Is(err, session.ErrUnavailable) || errors.Is(err, session.ErrSlow) || errors.Is(err, session.ErrOutcomeUnknown) {
		return err
	}
	return fmt.Errorf("%w: %v", ctx.Err(), err) //nolint:errorlint // it is no longer what it says
}

// Fail answers with the problem that an error is, and logs what is our own fault.
func (s *Server) Fail(w http.ResponseWriter, r *http.Request, err error) int {
	f := problem.Of(err)
	s.LogInternal(w, r, f, err)
	cut := f.Kind == problem.KindTooLarge || noMemory(err) && !request.SkipBody(w, r, s.Wall().Add(skipTime))
	if cut && r.ProtoMajor == 1 {
		// Else net/http would first wait for the rest of the body, which may never come.
		w.Header().Set("Connection", "close")
	}
	return problem.Write(w, f)
}

// noMemory reports whether a request's body was not read, or its answer not sent, for want of memory.
func noMemory(err error) bool {
	return errors.Is(err, respond.ErrMemory) || errors.Is(err, respond.ErrMemoryShare)
}

// LogInternal logs an error that is our own fault.
func (s *Server) LogInternal(w http.ResponseWriter, r *http.Request, f *problem.Fault, err error) {
	level, what := slog.LevelDebug, "request not served"
	switch {
	case f.Kind == problem.KindInternal:
		level, what = slog.LevelWarn, "request failed"
	case f.Kind.Status < http.StatusInternalServerError:
		return
	}
	s.Log.Log(r.Context(), level, what, "request_id", RequestID(w), "method", r.Method, "path", r.URL.Path, "sqlstate", session.StateOf(err), "error", err)
}

// skipTime is how long a client may go on sending a body that was refused for want of memory.
const skipTime = time.Second
