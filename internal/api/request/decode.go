package request

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"quotad/internal/api/problem"
	"quotad/internal/quota/model"
)

var strict = json.RejectUnknownMembers(true)

// ErrWantObject is the error for a JSON body that is not an object.
var ErrWantObject = problem.Invalid("", "the body must be a JSON object")

// Decode decodes one JSON object into a struct. A body that is not JSON is a 400. JSON with an unknown or
// repeated member, a wrong type, or a null in a field that allows no null is a 422 with the field's path.
// Missing members keep the struct's values.
func Decode(body []byte, into any) error { return DecodeBy(strict, body, into) }

// DecodeBy is Decode with other options of the JSON package.
func DecodeBy(options json.Options, body []byte, into any) error {
	if err := decodeLoosely(options, body, into); err != nil {
		return err
	}
	return refuseValues(body)
}

// decodeLoosely is DecodeBy for a caller that rejects single values itself.
func decodeLoosely(options json.Options, body []byte, into any) error {
	err := json.Unmarshal(body, into, options)
	if err == nil {
		return nil
	}
	if detail := NotJSON(body); detail != "" {
		return &problem.Fault{Kind: problem.KindNotJSON, Detail: detail}
	}
	if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		// NotJSON allows a repeated name, so a repeated name is the only possible error here.
		return problem.Invalid(fieldPath(syntax.JSONPointer), "is there more than once")
	}
	if semantic, ok := errors.AsType[*json.SemanticError](err); ok {
		return wrongField(semantic)
	}
	return fmt.Errorf("decoding a %T: %w", into, err)
}

// NotJSON returns the reason for which a body is not JSON, or "" if the body is JSON. A body with a repeated
// name is JSON, because RFC 8259 says only that names should be unique.
func NotJSON(body []byte) string {
	const space = " \t\r\n"
	if len(bytes.TrimLeft(body, space)) == 0 {
		return "the body is empty: send a JSON object"
	}
	d := jsontext.NewDecoder(bytes.NewBuffer(body), jsontext.AllowDuplicateNames(true))
	_, err := d.ReadValue()
	if err == nil {
		rest := bytes.TrimLeft(body[d.InputOffset():], space)
		if len(rest) == 0 {
			return ""
		}
		return "there is more after the JSON value, at byte " + strconv.Itoa(len(body)-len(rest))
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Sprintf("not JSON: it ends too early, after byte %d", len(body))
	}
	if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return fmt.Sprintf("not JSON at byte %d: %s", syntax.ByteOffset, strings.TrimPrefix(syntax.Err.Error(), "jsontext: "))
	}
	return "not JSON"
}

// nullable reports whether null is allowed at a position: for a key that never expires, billing that does not
// end, or a tier without an upper bound. At other positions the same name may be the client's own, as in
// metadata.
func nullable(at jsontext.Pointer) bool {
	switch at {
	case "/expires_at", "/starts_at", "/trial_ends_at", "/ends_at":
		return true
	}
	steps := slices.Collect(at.Tokens())
	if len(steps) == 3 && steps[0] == "tiers" && steps[2] == "up_to" {
		return true
	}
	return len(steps) == 5 && steps[0] == "prices" && steps[2] == "tiers" && steps[4] == "up_to"
}

// refuseValues rejects a null in a field that allows no null, and a text with U+0000. Go's decoder treats null
// as a missing member, so a hit with a cost of null would cost the default of 1. PostgreSQL cannot store U+0000,
// neither in text nor in jsonb.
func refuseValues(body []byte) error {
	if !bytes.Contains(body, []byte("null")) && !bytes.Contains(body, []byte(`\u0000`)) {
		return nil
	}
	d := jsontext.NewDecoder(bytes.NewReader(body))
	for {
		token, err := d.ReadToken()
		if err != nil {
			return nil // only io.EOF is possible, because the body was decoded before
		}
		at := d.StackPointer()
		switch {
		case token.Kind() == '"' && strings.ContainsRune(token.String(), 0):
			return problem.Invalid(fieldPath(at), "must not have the character U+0000")
		case token.Kind() != 'n' || nullable(at):
		case at == "":
			return ErrWantObject
		default:
			return problem.Invalid(fieldPath(at), "must not be null: give it a value, or leave it out where it may be")
		}
	}
}

// wrongField returns the problem for a JSON value that does not fit its field.
func wrongField(e *json.SemanticError) error {
	field := fieldPath(e.JSONPointer)
	switch {
	case errors.Is(e.Err, json.ErrUnknownName):
		return problem.Invalid(field, "is not known here"+Instead(e.JSONPointer.LastToken(), MembersOf(e.GoType)))
	case field == "":
		return ErrWantObject
	}
	if own, ok := errors.AsType[Mismatch](e.Err); ok {
		return problem.Invalid(field, string(own))
	}
	want := wanted(e.GoType)
	if example := textExamples[e.JSONPointer.LastToken()]; want == "a string" && example != "" {
		want += " such as " + example
	}
	if want == wholeNumber && e.JSONKind == '"' {
		return problem.Invalid(field, "must be without quotes: "+want)
	}
	return problem.Invalid(field, "must be "+want)
}

// textExamples contains examples for string members that clients often write as numbers.
var textExamples = map[string]string{
	"window": `"1h"`, "precision": `"1s"`, "ttl": `"10m"`, "billing_anchor": `"2026-01-31T00:00:00"`,
	"unit_price": `"0.05"`, "package_price": `"0.05"`, "flat_price": `"0.05"`,
}

// wholeNumber describes the JSON of an integer. A field's own rules may allow less.
var wholeNumber = fmt.Sprintf("a whole number of at most %d, without fraction or exponent", model.MaxNumber)

// Mismatch is the error of a type with its own JSON decoding for JSON that the type does not accept.
type Mismatch string

func (m Mismatch) Error() string { return string(m) }

// wanted describes the JSON from which a Go type is decoded.
func wanted(t reflect.Type) string {
	if t == nil {
		return "of another type"
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int32, reflect.Int64:
		return wholeNumber
	case reflect.Slice:
		return "an array"
	case reflect.Map, reflect.Struct:
		return "an object"
	}
	return "of another type"
}

// fieldPath converts /limits/0/window into limits[0].window.
func fieldPath(at jsontext.Pointer) string {
	var path strings.Builder
	for token := range at.Tokens() {
		if _, err := strconv.ParseUint(token, 10, 31); err == nil && path.Len() > 0 {
			path.WriteString("[" + token + "]")
			continue
		}
		if path.Len() > 0 {
			path.WriteByte('.')
		}
		path.WriteString(token)
	}
	return path.String()
}
