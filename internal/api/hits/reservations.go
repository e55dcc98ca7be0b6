package hits

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strconv"

	"quotad/client"
	"quotad/internal/api/apidoc"
	"quotad/internal/api/problem"
	"quotad/internal/api/request"
	"quotad/internal/api/respond"
	"quotad/internal/api/serve"
	"quotad/internal/plans/catalog"
	"quotad/internal/quota"
	"quotad/internal/quota/locked"
	"quotad/internal/quota/model"
	"quotad/internal/quota/session"
)

// maxTTL is the maximum lifetime of a reservation, ms.
const maxTTL = model.MaxTTL / 1000

// reservationRequest is the body of POST /v1/reservations.
type reservationRequest client.ReservationRequest

// reservation is a checked reservationRequest: a hit whose units are reserved for a limited time.
type reservation struct {
	hit
	ttl int64 // ms
}

// identify checks the request and sets its single id. key is the id in the header. The members that a
// reservation shares with a hit follow the hit's rules.
func (in *reservationRequest) identify(key string) (asked reservation, err error) {
	as := client.HitRequest{Customer: in.Customer, Meter: in.Meter, Cost: in.Cost, Attributes: in.Attributes, ID: in.ID}
	bad := request.CheckHit(&as, 1)
	if in.TTL < 1 || in.TTL > maxTTL {
		bad = append(bad, model.FieldError{Field: "ttl_ms", Detail: fmt.Sprintf("is required, and must be between 1 and %d (24 h)", maxTTL)})
	}
	if len(bad) > 0 {
		return asked, problem.InvalidFields(bad)
	}
	asked = reservation{hit: askedOf(&as, request.OpReservation), ttl: in.TTL}
	asked.Reservation = true
	asked.id, err = request.OneID(asked.id, key)
	return asked, err
}

// operation returns the id under which the reservation is stored. A request without an id receives a random id.
func (h *reservation) operation() model.ID {
	if h.id == "" {
		return model.NewID(request.OpUnnamed, rand.Text())
	}
	return model.NewID(request.OpReservation, h.id,
		request.PayloadOf(h.attributes, h.Meter, strconv.FormatInt(h.Cost, 10), strconv.FormatInt(h.ttl, 10))...)
}

// reserve serves POST /v1/reservations.
func (s *Room) reserve(w http.ResponseWriter, r *http.Request, p serve.Params) int {
	buf := respond.BufferFor(p.From)
	defer respond.PutBuffer(buf)
	denied, err := denyStatusOf(p.Query)
	var asked reservation
	if err == nil {
		asked, err = s.readReservation(r, buf)
	}
	if err != nil {
		return s.Fail(w, r, err)
	}
	ctx, cancel := s.ChargeInTime(r)
	defer cancel()
	made, err := s.hold(ctx, s.Engine.From(p.From), &asked)
	s.Metrics.CountOperation(serve.NameReserve, &made.Decision, err)
	if err != nil {
		return s.Fail(w, r, serve.Explain(serve.OutOfTime(ctx, err), asked.names()))
	}
	return s.answerReservation(w, &asked.hit, &made, denied, buf)
}

func (s *Room) readReservation(r *http.Request, buf *respond.Buffer) (asked reservation, err error) {
	var in reservationRequest
	key, err := s.readKeyed(r, buf, &in)
	if err != nil {
		return asked, err
	}
	return in.identify(key)
}

// hold lets the engine create the reservation. Retries after changes of limits use the same id.
func (s *Room) hold(ctx context.Context, from quota.Sender, asked *reservation) (made locked.Reservation, err error) {
	id := asked.operation()
	err = catalog.WhileStale(func(atLeast int64) error {
		t, err := s.target(ctx, &asked.hit, atLeast)
		if err == nil {
			err = s.Catalog.Returning(ctx, s.Store, asked.Meter)
		}
		if err == nil {
			made, err = from.Reserve(ctx, t, asked.Cost, asked.ttl*1000, id)
			err = s.barred(ctx, err)
		}
		return err
	})
	if asked.id == "" && errors.Is(err, locked.ErrUnderWay) {
		err = session.ErrBusy // no other operation can have the random id
	}
	return made, err
}

// answerReservation writes 201 and the reservation, or a refusal in the form of a refused hit.
func (s *Room) answerReservation(w http.ResponseWriter, h *hit, made *locked.Reservation, denied int, buf *respond.Buffer) int {
	d := &made.Decision
	buf.Views = respond.AppendViews(buf.Views[:0], d)
	wait := int64(0)
	if !d.Allowed {
		wait = d.RetryAfter()
	}
	buf.QuotaHeaders(w.Header(), s.ResetStyle, d.Now(), d.FromNow(wait))
	if !d.Allowed {
		buf.B = respond.AppendDecision(buf.B[:0], &h.Subject, d, buf.Views, wait, denied)
		return respond.Write(w, denied, respond.ProblemJSON, buf.B)
	}
	id := made.ID.String()
	w.Header()["Location"] = []string{reservationsPattern + "/" + id}
	b := append(buf.B[:0], `{"id":"`...)
	b = append(b, id...)
	b = append(b, `","expires_at":`...)
	b = respond.AppendTime(b, made.ExpiresAt)
	b = append(b, `,"allowed":true`...)
	buf.B = respond.AppendOutcome(b, &h.Subject, d, buf.Views, wait)
	return respond.Write(w, http.StatusCreated, respond.PlainJSON, buf.B)
}

// ReservationRoutes returns the routes of reservations. A nil Room only describes the routes.
func (s *Room) ReservationRoutes() []serve.Route {
	const one = reservationsPattern + "/{id}"
	release := serve.Delete(apidoc.Backends, one, "reservations.release", "Give a reservation back", s.release).Fails(problem.KindNotFound, problem.KindConflict)
	release.Tag = "Backends"
	return []serve.Route{
		{Operation: apidoc.Operation{
			Method: "POST", Pattern: reservationsPattern, Access: apidoc.Backends, Tag: "Backends", ID: "reservations.create",
			Summary: "Hold units until their cost is known",
			Params:  []apidoc.Param{denyStatusParam},
			Request: reflect.TypeFor[client.ReservationRequest](), Response: reflect.TypeFor[client.Reservation](), Refusable: true, Status: serve.Created201,
			Problems: []*problem.Kind{
				problem.KindNotFound, problem.KindNotInPlan, problem.KindSuspended, problem.KindEnded, problem.KindIDReused,
				problem.KindUnderWay, problem.KindConflict,
			}, IDHeader: request.IdempotencyHeader, Sends: map[int][]string{http.StatusCreated: {"Location"}},
		}, Raw: s.reserve},
		{Operation: apidoc.Operation{
			Method: "POST", Pattern: one + "/commit", Access: apidoc.Backends, Tag: "Backends", ID: "reservations.commit", Summary: "Charge what a reservation was for",
			Request: reflect.TypeFor[client.CommitRequest](), Response: reflect.TypeFor[client.Commit](), DoesNotFit: reflect.TypeFor[client.NoRoom](),
			Status: serve.OK200, Problems: []*problem.Kind{problem.KindNotFound, problem.KindConflict},
		}, Raw: s.commit},
		release,
	}
}

const reservationsPattern = "/v1/reservations"
