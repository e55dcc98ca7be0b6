package request

import (
	stdjson "encoding/json"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"quotad/client"
	"quotad/internal/plans"
	"quotad/internal/quota/model"
)

// Requests, the database and answers all use the types of package plans. This file holds what
// JSON and Go leave open: what a member means that is left out, and how numbers stay as they
// were written.

// DecodePlan reads a plan as an admin writes it.
func DecodePlan(body []byte) (plans.PlanInput, error) {
	var in client.PlanInput
	err := DecodeBy(Members, body, &in)
	return plans.PlanInput(in), err
}

// noIntervals stands for a base_every of 0 that was written, and is refused. Left out, it is 1.
const noIntervals = -1

// Members are the options to decode a body of any type with; see DecodeBy.
var Members = json.JoinOptions(strict, json.WithUnmarshalers(json.JoinUnmarshalers(
	json.UnmarshalFromFunc(readPlan), json.UnmarshalFromFunc(readLimit), json.UnmarshalFromFunc(readFeature), json.UnmarshalFromFunc(readTime))))

// readPlan reads a plan, with the defaults of its numbers.
func readPlan(d *jsontext.Decoder, p *client.PlanInput) error {
	type plan client.PlanInput // a type without this function, against endless recursion
	in := plan{IntervalCount: 1, BaseEvery: 1}
	err := json.UnmarshalDecode(d, &in)
	if in.BaseEvery == 0 {
		in.BaseEvery = noIntervals
	}
	*p = client.PlanInput(in)
	return err
}

// readLimit reads a limit. Where its number is left out, the number is NoLimit, which is
// refused: 0 would mean a closed limit.
func readLimit(d *jsontext.Decoder, l *plans.Limit) error {
	type limit plans.Limit // a type without this function, against endless recursion
	in := limit{Spec: model.Spec{Limit: model.NoLimit}}
	err := json.UnmarshalDecode(d, &in)
	*l = plans.Limit(in)
	return err
}

// readFeature reads the value of a feature. A number keeps the text that it was written as: a
// float64 would round it.
func readFeature(d *jsontext.Decoder, feature *any) error {
	switch d.PeekKind() {
	case '0':
		raw, err := d.ReadValue()
		*feature = stdjson.Number(raw) // copies
		return err
	case '"':
		token, err := d.ReadToken()
		*feature = token.String()
		return err
	case 't', 'f':
		token, err := d.ReadToken()
		*feature = token.Kind() == 't'
		return err
	}
	if err := d.SkipValue(); err != nil {
		return err
	}
	return Mismatch("must be true, false, a number or a string")
}
