package hits

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"quotad/client"
	"quotad/internal/api/problem"
	"quotad/internal/api/request"
	"quotad/internal/api/respond"
	"quotad/internal/api/serve"
	"quotad/internal/plans"
	"quotad/internal/plans/catalog"
	"quotad/internal/quota/locked"
	"quotad/internal/quota/model"
)

// settlement is the commit or the release of a reservation.
type settlement struct {
	id              string
	customer, meter string
	cost            int64
	overrun         bool
	done            locked.Settled
}

// settle finds the reservation whose id is in the path and lets do settle it.
func (s *Room) settle(ctx context.Context, st *settlement, do func(*model.Target, locked.ReservationID) (locked.Settled, error)) error {
	r, ok := locked.ParseReservationID(st.id)
	if !ok {
		return locked.ErrUnknownReservation
	}
	return catalog.WhileStale(func(atLeast int64) (err error) {
		var t *model.Target
		t, st.customer, st.meter, err = s.Catalog.ResolveByID(ctx, r.Customer, r.Meter, atLeast)
		switch {
		case errors.Is(err, plans.ErrUnknownCustomer), errors.Is(err, plans.ErrUnknownMeter):
			return locked.ErrUnknownReservation
		case err != nil:
			return err
		}
		st.done, err = do(t, r)
		return err
	})
}

// commit serves POST /v1/reservations/{id}/commit.
func (s *Room) commit(w http.ResponseWriter, r *http.Request, p serve.Params) int {
	buf := respond.BufferFor(p.From)
	defer respond.PutBuffer(buf)
	st, err := s.readCommit(r, buf)
	if err != nil {
		return s.Fail(w, r, err)
	}
	ctx, cancel := s.ChargeInTime(r)
	defer cancel()
	err = s.settle(ctx, &st, func(t *model.Target, id locked.ReservationID) (locked.Settled, error) {
		if st.overrun {
			return s.Engine.From(p.From).CommitOverrun(ctx, t, id, st.cost)
		}
		return s.Engine.From(p.From).Commit(ctx, t, id, st.cost)
	})
	s.Metrics.CountOperation(serve.NameCommit, &st.done.Decision, err)
	if room, ok := errors.AsType[*locked.NoRoomError](err); ok {
		return s.answerNoRoom(w, room, buf)
	}
	if err != nil {
		return s.Fail(w, r, serve.Explain(serve.OutOfTime(ctx, err), serve.Names{Committed: st.id}))
	}
	buf.Views = respond.AppendViews(buf.Views[:0], &st.done.Decision)
	buf.QuotaHeaders(w.Header(), s.ResetStyle, st.done.Now(), 0)
	buf.B = st.appendAnswer(buf.B[:0], buf.Views)
	return respond.Write(w, http.StatusOK, respond.PlainJSON, buf.B)
}

// readCommit reads the request of a commit.
func (s *Room) readCommit(r *http.Request, buf *respond.Buffer) (st settlement, err error) {
	if st.id, err = request.PathValue(r, "id"); err != nil {
		return st, err
	}
	if err = request.ReadBody(r, buf, s.Memory, request.MaxBody); err != nil {
		return st, err
	}
	in := client.CommitRequest{Cost: -1}
	if err = request.Decode(buf.B, &in); err != nil {
		return st, err
	}
	if in.Cost < 0 || in.Cost > model.MaxNumber {
		return st, problem.Invalid("cost", fmt.Sprintf("is required, from 0 to %d", model.MaxNumber))
	}
	st.cost, st.overrun = in.Cost, in.Overrun
	return st, nil
}

func (st *settlement) appendAnswer(b []byte, views []model.View) []byte {
	d := &st.done
	b = append(b, `{"id":`...)
	b = respond.AppendString(b, st.id)
	b = append(b, `,"customer":`...)
	b = respond.AppendString(b, st.customer)
	b = append(b, `,"meter":`...)
	b = respond.AppendString(b, st.meter)
	b = append(b, `,"cost":`...)
	b = strconv.AppendInt(b, st.cost, 10)
	b = append(b, `,"reserved":`...)
	b = strconv.AppendInt(b, d.Reserved, 10)
	b = append(b, `,"late":`...)
	b = strconv.AppendBool(b, d.Late)
	b = respond.AppendInstant(b, &d.Decision)
	b = respond.AppendReplayed(b, &d.Decision)
	return append(respond.AppendLimits(b, views), '}')
}

// answerNoRoom writes the problem of a commit that does not fit. The problem contains the largest cost that
// would fit, and the limits.
func (s *Room) answerNoRoom(w http.ResponseWriter, room *locked.NoRoomError, buf *respond.Buffer) int {
	d := &room.Decision
	buf.Views = respond.AppendViews(buf.Views[:0], d)
	buf.QuotaHeaders(w.Header(), s.ResetStyle, d.Now(), 0)
	b := problem.Append(buf.B[:0], problem.Of(room), problem.MaxErrors)
	b = append(b[:len(b)-1], `,"committable":`...)
	b = strconv.AppendInt(b, room.Most, 10)
	b = append(b, `,"late":`...)
	b = strconv.AppendBool(b, room.Late)
	b = respond.AppendInstant(b, d)
	buf.B = append(respond.AppendLimits(b, buf.Views), '}')
	return respond.Write(w, problem.KindDoesNotFit.Status, respond.ProblemJSON, buf.B)
}

// release serves DELETE /v1/reservations/{id}.
func (s *Room) release(c *serve.Call) error {
	st := settlement{id: c.ID}
	ctx, cancel := context.WithTimeout(c.Ctx(), s.DecideWithin)
	defer cancel()
	err := s.settle(ctx, &st, func(t *model.Target, id locked.ReservationID) (locked.Settled, error) {
		return s.Engine.From(c.From).Release(ctx, t, id)
	})
	s.Metrics.CountOperation(serve.NameRelease, &st.done.Decision, err)
	return serve.Explain(serve.OutOfTime(ctx, err), serve.Names{Released: st.id})
}
