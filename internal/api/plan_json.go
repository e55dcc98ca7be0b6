package api

import (
	stdjson "encoding/json"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"quotad/internal/plans"
	"quotad/internal/quota/model"
)

// Plans are written, stored and shown as plans' own types have it. Here is only what JSON
// and Go leave open between them: what a member that is left out means, and numbers that
// stay as they were written.

// decodePlan reads a plan as an admin writes it.
func decodePlan(body []byte) (plans.PlanInput, error) {
	in := plans.PlanInput{IntervalCount: 1}
	return in, decodeBy(planMembers, body, &in)
}

var planMembers = json.JoinOptions(strict, json.WithUnmarshalers(json.JoinUnmarshalers(
	json.UnmarshalFromFunc(readLimit), json.UnmarshalFromFunc(readFeature))))

var customerMembers = json.JoinOptions(strict, json.WithUnmarshalers(json.UnmarshalFromFunc(readFeature)))

// readLimit makes of a limit whose number is left out one that is refused: as 0 it would
// be closed.
func readLimit(d *jsontext.Decoder, l *plans.Limit) error {
	type limit plans.Limit // without this function
	in := limit{Spec: model.Spec{Limit: model.NoLimit}}
	err := json.UnmarshalDecode(d, &in)
	*l = plans.Limit(in)
	return err
}

// readFeature keeps numbers as they were written, since a float64 would round them.
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
	return mismatch("must be true, false, a number or a string")
}

// exactNumbers writes numbers as they are kept: jsonv2 takes them for strings.
var exactNumbers = json.WithMarshalers(json.MarshalToFunc(func(e *jsontext.Encoder, n stdjson.Number) error {
	return e.WriteValue(jsontext.Value(n))
}))
