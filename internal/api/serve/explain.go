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

// Names contains the names of resources in a request, for error texts. Each name has been checked: it is
// printable and has at most 200 bytes. A name that the request does not contain is empty.
type Names struct {
	Customer, Meter, plan, key, Limit, clock string

	version             int    // plan version
	Hit                 string // id of the hit that a refund concerns
	Committed, Released string // ids of reservations
}

// namesOf returns the names in the path and the query of a typed route.
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

// explained is an error of the table with a text that contains the next step.
type explained struct {
	error
	text string
}

func (e *explained) Error() string { return e.text }
func (e *explained) Unwrap() error { return e.error }

// Explain adds to an error the name of the missing or conflicting resource, and the next call to make. An error
// that does not concern a resource in n is returned unchanged.
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
		name   string // name of the resource
		format string // format with the quoted name and the path
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

// explainOperation returns the explanation of an error of a refund, reservation or import. It returns an empty
// string for other errors.
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

// explainSettled returns whether a reservation was committed or released, and the way to correct the difference.
func explainSettled(err error, id string) string {
	if before, ok := errors.AsType[*locked.SettledError](err); ok && before.Committed {
		return fmt.Sprintf("the reservation %s was committed with %d before: charge what is missing by POST /v1/hits, or give back what is too much by POST /v1/refunds without hit. Nothing was done",
			id, before.Cost)
	}
	return fmt.Sprintf("the reservation %s was released before, and nothing of it is booked: charge what was used by POST /v1/hits. Nothing was done", id)
}

// quoted returns a quoted name, shortened to the length that an error may repeat.
func quoted(name string) string { return strconv.Quote(plans.Shorten(name)) }

// inPath returns an escaped name for the path of the next call. It returns {key} for a name that is too long for
// an error.
func inPath(name string) string {
	if plans.Shorten(name) != name {
		return "{key}"
	}
	return url.PathEscape(name)
}

// OutOfTime converts an error that occurred after the request's time had ended. Such an error means that the
// request waited too long, and never that the database is out of reach. Therefore on_outage does not admit hits
// because of it. A database that is known to be too slow counts as out of reach.
func OutOfTime(ctx context.Context, err error) error {
	if ctx.Err() == nil || !errors.Is(err, session.ErrUnavailable) || errors.Is(err, session.ErrSlow) || errors.Is(err, session.ErrOutcomeUnknown) {
		return err
	}
	return fmt.Errorf("%w: %v", ctx.Err(), err) //nolint:errorlint // it is no longer what it says
}

// Fail responds with the problem for an error, and logs the error if quotad caused it.
func (s *Server) Fail(w http.ResponseWriter, r *http.Request, err error) int {
	f := problem.Of(err)
	s.LogInternal(w, r, f, err)
	cut := f.Kind == problem.KindTooLarge || noMemory(err) && !request.SkipBody(w, r, s.Wall().Add(skipTime))
	if cut && r.ProtoMajor == 1 {
		// Otherwise net/http would first wait for the rest of the body, which may never arrive.
		w.Header().Set("Connection", "close")
	}
	return problem.Write(w, f)
}

// noMemory reports whether a request's body was not read, or its response not sent, for lack of memory.
func noMemory(err error) bool {
	return errors.Is(err, respond.ErrMemory) || errors.Is(err, respond.ErrMemoryShare)
}

// LogInternal logs an error that quotad caused.
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

// skipTime is the time for which a client may continue to send a body that was rejected for lack of memory.
const skipTime = time.Second
