package request

import (
	stdjson "encoding/json"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"quotad/client"
	"quotad/internal/plans"
	"quotad/internal/quota/model"
)

// Requests, the database and responses all use the types of package plans. This file adds the rules that JSON
// and Go leave open: the meaning of missing members, and the exact text of numbers.

// DecodePlan decodes a plan in the form of a request.
func DecodePlan(body []byte) (plans.PlanInput, error) {
	var in client.PlanInput
	err := DecodeBy(Members, body, &in)
	return plans.PlanInput(in), err
}

// noIntervals replaces an explicit base_every of 0, which is rejected. A missing base_every is 1.
const noIntervals = -1

// Members contains the options for decoding a body of any type; see DecodeBy.
var Members = json.JoinOptions(strict, json.WithUnmarshalers(json.JoinUnmarshalers(
	json.UnmarshalFromFunc(readPlan), json.UnmarshalFromFunc(readLimit), json.UnmarshalFromFunc(readFeature), json.UnmarshalFromFunc(readTime))))

// readPlan decodes a plan and sets the defaults of its numbers.
func readPlan(d *jsontext.Decoder, p *client.PlanInput) error {
	type plan client.PlanInput // a type without this method, to avoid endless recursion
	in := plan{IntervalCount: 1, BaseEvery: 1}
	err := json.UnmarshalDecode(d, &in)
	if in.BaseEvery == 0 {
		in.BaseEvery = noIntervals
	}
	*p = client.PlanInput(in)
	return err
}

// readLimit decodes a limit. A missing number becomes NoLimit, which is rejected, because 0 would mean a closed
// limit.
func readLimit(d *jsontext.Decoder, l *plans.Limit) error {
	type limit plans.Limit // a type without this function, against endless recursion
	in := limit{Spec: model.Spec{Limit: model.NoLimit}}
	err := json.UnmarshalDecode(d, &in)
	*l = plans.Limit(in)
	return err
}

// readFeature decodes the value of a feature. A number keeps its original text, because a float64 would round
// it.
func readFeature(d *jsontext.Decoder, feature *any) error {
	switch d.PeekKind() {
	case '0':
		raw, err := d.ReadValue()
		*feature = stdjson.Number(raw) // copies the text
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
