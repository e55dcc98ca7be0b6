package imports

import (
	"errors"
	"fmt"
	"strconv"

	"quotad/client"
	"quotad/internal/api/problem"
	"quotad/internal/api/request"
	"quotad/internal/api/respond"
	"quotad/internal/api/serve"
	"quotad/internal/calendar"
	"quotad/internal/plans"
	"quotad/internal/quota/locked"
	"quotad/internal/quota/model"
)

// item is a line that is being imported.
type item struct {
	client.ImportLine
	number   int   // line number, from 1
	at       int64 // instant of the usage, µs since the Unix epoch
	err      error // reason for which the line was not done
	replayed bool
}

var errWantObjects = problem.Invalid("", "each line must be a JSON object")

// decodeLine reads and checks a line.
func decodeLine(number int, line []byte) item {
	it := item{number: number}
	if it.err = request.Decode(line, &it.ImportLine); errors.Is(it.err, request.ErrWantObject) {
		it.err = errWantObjects
	}
	if it.err == nil {
		it.err = it.check()
	}
	return it
}

// check returns all faults of a line and parses its instant. The members that a line shares with a hit follow
// the hit's rules.
func (it *item) check() error {
	as := client.HitRequest{Customer: it.Customer, Meter: it.Meter, Cost: it.Cost, Attributes: it.Attributes, ID: &it.ID}
	bad := request.CheckHit(&as, 1)
	refuse := func(field, detail string) { bad = append(bad, model.FieldError{Field: field, Detail: detail}) }
	usage, balance, level := it.Cost != nil || it.At != nil, it.Limit != nil || it.Used != nil, it.Level != nil
	switch {
	case usage && balance || level && (usage || balance):
		refuse("", "a line is usage, with cost and at, or an opening balance, with limit and used, or what is held, with level, and only one of these")
	case level:
		if *it.Level < 0 || *it.Level > model.MaxNumber {
			refuse("level", fmt.Sprintf("must be between 0 and %d", model.MaxNumber))
		}
	case usage:
		it.checkUsage(refuse)
	case balance:
		it.checkBalance(refuse)
	default:
		refuse("", "a line must have cost and at, for usage, or limit and used, for an opening balance, or level, for what is held")
	}
	if len(bad) > 0 {
		return problem.InvalidFields(bad)
	}
	return nil
}

func (it *item) checkUsage(refuse func(field, detail string)) {
	if it.Cost == nil {
		refuse("cost", "is required beside at")
	}
	if it.At == nil {
		refuse("at", "is required beside cost: when the units were used")
		return
	}
	at, err := calendar.ParseInstant(*it.At)
	if err != nil || at < 0 {
		refuse("at", string(request.ErrWantTime)+", from 1970 on")
	}
	it.at = at
}

func (it *item) checkBalance(refuse func(field, detail string)) {
	switch {
	case it.Limit == nil:
		refuse("limit", "is required beside used")
	case !plans.ValidKey(*it.Limit):
		refuse("limit", plans.KeyRule)
	}
	switch {
	case it.Used == nil:
		refuse("used", "is required beside limit")
	case *it.Used < 0 || *it.Used > model.MaxNumber:
		refuse("used", fmt.Sprintf("must be between 0 and %d", model.MaxNumber))
	}
}

// operation returns a checked line in the engine's form.
func (it *item) operation(t *model.Target) locked.Import {
	op := locked.Import{Target: t.For(it.Attributes)}
	var payload []string
	if it.Level != nil {
		op.SetsLevel, op.Level = true, *it.Level
		payload = []string{it.Meter, "level", strconv.FormatInt(op.Level, 10)}
	} else if it.Limit != nil {
		op.Limit, op.Used = *it.Limit, *it.Used
		payload = []string{it.Meter, "balance", op.Limit, strconv.FormatInt(op.Used, 10)}
	} else {
		op.Cost, op.At = *it.Cost, it.at
		payload = []string{it.Meter, "usage", strconv.FormatInt(op.Cost, 10), strconv.FormatInt(op.At, 10)}
	}
	op.ID = model.NewID(request.OpImport, it.ID, request.PayloadOf(it.Attributes, payload...)...)
	return op
}

func (it *item) names() serve.Names {
	n := serve.Names{Customer: it.Customer, Meter: it.Meter}
	if it.Limit != nil {
		n.Limit = *it.Limit
	}
	return n
}

// appendError appends the JSON of a line's error. f is the problem for the error.
func (it *item) appendError(b []byte, f *problem.Fault) []byte {
	b = append(b, `{"line":`...)
	b = strconv.AppendInt(b, int64(it.number), 10)
	if request.CheckID(it.ID) == "" {
		b = append(b, `,"id":`...)
		b = respond.AppendString(b, it.ID)
	}
	b = append(b, `,"status":`...)
	b = strconv.AppendInt(b, int64(f.Kind.Status), 10)
	b = append(b, `,"type":`...)
	b = respond.AppendString(b, f.Kind.TypeURI())
	b = append(b, `,"detail":`...)
	b = respond.AppendString(b, f.Detail)
	if field := fieldOf(it.err, f); field != "" {
		b = append(b, `,"field":`...)
		b = respond.AppendString(b, field)
	}
	return append(b, '}')
}

// fieldOf returns the member of a line that err concerns, or the first of several members. It returns an empty
// string if err concerns the whole line, or no line. f is the problem for err.
func fieldOf(err error, f *problem.Fault) string {
	if len(f.Fields) > 0 {
		return f.Fields[0].Field
	}
	switch {
	case errors.Is(err, plans.ErrUnknownCustomer):
		return "customer"
	case errors.Is(err, plans.ErrUnknownMeter), errors.Is(err, plans.ErrNotInPlan):
		return "meter"
	case errors.Is(err, locked.ErrLevel), errors.Is(err, locked.ErrNoLevel):
		return "meter"
	case errors.Is(err, locked.ErrNoSuchLimit):
		return "limit"
	case errors.Is(err, locked.ErrFuture):
		return "at"
	case errors.Is(err, locked.ErrOtherPayload), errors.Is(err, locked.ErrUnderWay):
		return "id"
	}
	return ""
}
