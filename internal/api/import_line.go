package api

import (
	"errors"
	"fmt"
	"strconv"

	"quotad/internal/api/problem"
	"quotad/internal/api/respond"
	"quotad/internal/calendar"
	"quotad/internal/plans"
	"quotad/internal/quota/ledger"
	"quotad/internal/quota/model"
)

// importLine is one line of the body of POST /v1/imports. With cost and at it is usage of an
// instant. With limit and used it is an opening balance.
type importLine struct {
	ID         string            `json:"id" minLength:"1" maxLength:"255" doc:"The idempotency key of the line, among those of its customer. The line is done once, however often it is sent with this id."`
	Customer   string            `json:"customer" minLength:"1" maxLength:"200" pattern:"^[ -.0-~]+$" doc:"The customer's key. An import creates no customer."`
	Meter      string            `json:"meter" minLength:"1" maxLength:"200" pattern:"^[A-Za-z0-9._:-]+$" doc:"The meter's key."`
	Cost       *int64            `json:"cost,omitempty" minimum:"1" maximum:"999999999999999" doc:"Of usage: units that were used."`
	At         *string           `json:"at,omitempty" format:"date-time" doc:"Of usage: when the units were used, RFC 3339.\n- From 1970 on, and not in the future by the customer's clock.\n- The units are usage of the hour of at.\n- The units count in windows that contain at and still run."`
	Limit      *string           `json:"limit,omitempty" minLength:"1" maxLength:"200" pattern:"^[A-Za-z0-9._:-]+$" doc:"Of an opening balance: the name of one of the meter's limits. A concurrency limit has no opening balance."`
	Used       *int64            `json:"used,omitempty" minimum:"0" maximum:"999999999999999" doc:"Of an opening balance: units that count against the limit from now on. They replace what counted before. No usage is booked."`
	Attributes map[string]string `json:"attributes,omitempty" maxProperties:"16" doc:"As of a hit: they name the buckets of limits per attribute."`
}

// An importItem is a line on its way.
type importItem struct {
	importLine
	number   int   // of the line, from 1
	at       int64 // of usage, µs since the Unix epoch
	err      error // why it was not done
	replayed bool
}

var errWantObjects = problem.Invalid("", "each line must be a JSON object")

// decodeImport reads and checks a line.
func decodeImport(number int, line []byte) importItem {
	it := importItem{number: number}
	if it.err = decode(line, &it.importLine); errors.Is(it.err, errWantObject) {
		it.err = errWantObjects
	}
	if it.err == nil {
		it.err = it.check()
	}
	return it
}

// check reports all that is wrong with a line, and reads its instant. The members that a line
// shares with a hit follow the hit's rules.
func (it *importItem) check() error {
	as := hitRequest{Customer: it.Customer, Meter: it.Meter, Cost: it.Cost, Attributes: it.Attributes, ID: &it.ID}
	bad := as.check(1)
	refuse := func(field, detail string) { bad = append(bad, model.FieldError{Field: field, Detail: detail}) }
	usage, balance := it.Cost != nil || it.At != nil, it.Limit != nil || it.Used != nil
	switch {
	case usage && balance:
		refuse("", "a line is usage, with cost and at, or an opening balance, with limit and used, and not both")
	case usage:
		it.checkUsage(refuse)
	case balance:
		it.checkBalance(refuse)
	default:
		refuse("", "a line must have cost and at, for usage, or limit and used, for an opening balance")
	}
	if len(bad) > 0 {
		return problem.InvalidFields(bad)
	}
	return nil
}

func (it *importItem) checkUsage(refuse func(field, detail string)) {
	if it.Cost == nil {
		refuse("cost", "is required beside at")
	}
	if it.At == nil {
		refuse("at", "is required beside cost: when the units were used")
		return
	}
	at, err := calendar.ParseInstant(*it.At)
	if err != nil || at < 0 {
		refuse("at", string(errWantTime)+", from 1970 on")
	}
	it.at = at
}

func (it *importItem) checkBalance(refuse func(field, detail string)) {
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

// operation is a checked line as the engine takes it.
func (it *importItem) operation(t *model.Target) ledger.Import {
	op := ledger.Import{Target: t.For(it.Attributes)}
	var payload []string
	if it.Limit != nil {
		op.Limit, op.Used = *it.Limit, *it.Used
		payload = []string{it.Meter, "balance", op.Limit, strconv.FormatInt(op.Used, 10)}
	} else {
		op.Cost, op.At = *it.Cost, it.at
		payload = []string{it.Meter, "usage", strconv.FormatInt(op.Cost, 10), strconv.FormatInt(op.At, 10)}
	}
	op.ID = model.NewID(opImport, it.ID, payloadOf(it.Attributes, payload...)...)
	return op
}

func (it *importItem) names() names {
	n := names{customer: it.Customer, meter: it.Meter}
	if it.Limit != nil {
		n.limit = *it.Limit
	}
	return n
}

// appendError appends the JSON of a line's error. f is the problem of that error.
func (it *importItem) appendError(b []byte, f *problem.Fault) []byte {
	b = append(b, `{"line":`...)
	b = strconv.AppendInt(b, int64(it.number), 10)
	if checkID(it.ID) == "" {
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

// fieldOf is the member of a line that err concerns, or the first of several. It is empty
// where err concerns the whole line, or no line. f is the problem of err.
func fieldOf(err error, f *problem.Fault) string {
	if len(f.Fields) > 0 {
		return f.Fields[0].Field
	}
	switch {
	case errors.Is(err, plans.ErrUnknownCustomer):
		return "customer"
	case errors.Is(err, plans.ErrUnknownMeter), errors.Is(err, plans.ErrNotInPlan):
		return "meter"
	case errors.Is(err, ledger.ErrNoSuchLimit):
		return "limit"
	case errors.Is(err, ledger.ErrFuture):
		return "at"
	case errors.Is(err, ledger.ErrOtherPayload), errors.Is(err, ledger.ErrUnderWay):
		return "id"
	}
	return ""
}
