package apidoc

import (
	"testing"

	"github.com/danielgtaylor/huma/v2"
)

func TestTypesInWords(t *testing.T) {
	text := &huma.Schema{Type: "string"}
	for want, s := range map[string]*huma.Schema{
		"string or null":         {Type: "string", Nullable: true},
		"array of [X] or string": {Type: "array", Items: &huma.Schema{AnyOf: []*huma.Schema{{Ref: "#/components/schemas/X"}, text}}},
		"object of string":       {Type: "object", AdditionalProperties: text},
		"boolean or number":      {AnyOf: []*huma.Schema{{Type: huma.TypeBoolean}, {Type: huma.TypeNumber}}},
		"time (RFC 3339)":        {Type: "string", Format: "date-time"},
		"any":                    {},
		"[A] or [B]":             {OneOf: []*huma.Schema{{Ref: "#/components/schemas/A"}, {Ref: "#/components/schemas/B"}}},
	} {
		got := ""
		for _, word := range typeOf(s) {
			if word.Link {
				word.Text = "[" + word.Text + "]"
			}
			got += word.Text
		}
		if got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
}

// A parameter of a path that nobody has written words for has none, and no other's.
func TestUnknownPathsHaveNoWords(t *testing.T) {
	for _, pattern := range []string{"/v1/nothing/{key}", "/v1/nothing/{id}", "/v1/nothing/{n}", "/v1/nothing/{name}"} {
		for _, p := range parameters(&Operation{Pattern: pattern}) {
			if p.Description != "" {
				t.Errorf("%s is said to be %q", pattern, p.Description)
			}
		}
	}
}
