package hits

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	"quotad/client"
	"quotad/internal/api/problem"
	"quotad/internal/api/request"
	"quotad/internal/api/respond"
	"quotad/internal/api/serve"
	"quotad/internal/plans/catalog"
	"quotad/internal/quota"
	"quotad/internal/quota/locked"
	"quotad/internal/quota/model"
)

// refundRequest is the body of POST /v1/refunds.
type refundRequest client.RefundRequest

// identify checks the request and sets its single id. key is the id in the header. The members that a refund
// shares with a hit follow the hit's rules.
func (in *refundRequest) identify(key string) error {
	as := client.HitRequest{Customer: in.Customer, Meter: in.Meter, Cost: &in.Cost, Attributes: in.Attributes, ID: in.ID}
	if in.Cost == 0 {
		as.Cost = nil
	}
	bad := request.CheckHit(&as, 1)
	if in.Cost == 0 {
		bad = append(bad, model.FieldError{Field: "cost", Detail: fmt.Sprintf("is required: how many units to give back, from 1 to %d", model.MaxNumber)})
	}
	if in.Hit != nil {
		if wrong := request.CheckID(*in.Hit); wrong != "" {
			bad = append(bad, model.FieldError{Field: "hit", Detail: wrong})
		}
	}
	if in.ID == nil && key == "" {
		bad = append(bad, model.FieldError{
			Field:  "id",
			Detail: "is required, here or as the header Idempotency-Key, so that a refund that is sent again is done once",
		})
	}
	if len(bad) > 0 {
		return problem.InvalidFields(bad)
	}
	id, err := request.OneID(askedOf(&as, request.OpRefund).id, key)
	in.ID = &id
	return err
}

// operation returns the refund in the engine's form.
func (in *refundRequest) operation(t *model.Target) locked.Refund {
	r := locked.Refund{Target: t.For(in.Attributes), Cost: in.Cost}
	of := ""
	if in.Hit != nil {
		of = *in.Hit
		r.Hit = model.NewID(request.OpHit, of)
	}
	r.ID = model.NewID(request.OpRefund, *in.ID, request.PayloadOf(in.Attributes, in.Meter, strconv.FormatInt(in.Cost, 10), of)...)
	return r
}

func (in *refundRequest) names() serve.Names {
	n := serve.Names{Customer: in.Customer, Meter: in.Meter}
	if in.Hit != nil {
		n.Hit = *in.Hit
	}
	return n
}

// refund serves POST /v1/refunds.
func (s *Room) refund(w http.ResponseWriter, r *http.Request, p serve.Params) int {
	buf := respond.BufferFor(p.From)
	defer respond.PutBuffer(buf)
	var in refundRequest
	key, err := s.readKeyed(r, buf, &in)
	if err == nil {
		err = in.identify(key)
	}
	if err != nil {
		return s.Fail(w, r, err)
	}
	ctx, cancel := s.ChargeInTime(r)
	defer cancel()
	done, err := s.giveBack(ctx, s.Engine.From(p.From), &in)
	s.Metrics.CountOperation(serve.NameRefund, &done.Decision, err)
	if err != nil {
		return s.Fail(w, r, serve.Explain(serve.OutOfTime(ctx, err), in.names()))
	}
	buf.Views = respond.AppendViews(buf.Views[:0], &done.Decision)
	buf.QuotaHeaders(w.Header(), s.ResetStyle, done.Now(), 0)
	buf.B = in.appendAnswer(buf.B[:0], &done, buf.Views)
	return respond.Write(w, http.StatusOK, respond.PlainJSON, buf.B)
}

// giveBack lets the engine do the refund. A refund creates no customer, and it works even if the plan has lost
// the meter.
func (s *Room) giveBack(ctx context.Context, from quota.Sender, in *refundRequest) (done locked.Refunded, err error) {
	err = catalog.WhileStale(func(atLeast int64) error {
		t, err := s.Catalog.ResolveKnown(ctx, in.Customer, in.Meter, atLeast)
		if err == nil {
			err = s.Catalog.Returning(ctx, s.Store, in.Meter)
		}
		if err == nil {
			done, err = from.Refund(ctx, in.operation(t))
		}
		return err
	})
	return done, err
}

func (in *refundRequest) appendAnswer(b []byte, done *locked.Refunded, views []model.View) []byte {
	b = append(b, `{"customer":`...)
	b = respond.AppendString(b, in.Customer)
	b = append(b, `,"meter":`...)
	b = respond.AppendString(b, in.Meter)
	b = append(b, `,"cost":`...)
	b = strconv.AppendInt(b, in.Cost, 10)
	b = append(b, `,"refunded":`...)
	b = strconv.AppendInt(b, done.Units, 10)
	b = respond.AppendInstant(b, &done.Decision)
	b = respond.AppendReplayed(b, &done.Decision)
	return append(respond.AppendLimits(b, views), '}')
}

// readKeyed reads a request's body into in and returns the id in the header.
func (s *Room) readKeyed(r *http.Request, buf *respond.Buffer, in any) (key string, err error) {
	if key, err = request.IdempotencyKey(r.Header); err != nil {
		return "", err
	}
	if err = request.ReadBody(r, buf, s.Memory, request.MaxBody); err != nil {
		return "", err
	}
	return key, request.Decode(buf.B, in)
}
