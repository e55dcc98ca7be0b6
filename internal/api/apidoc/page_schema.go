package apidoc

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// docsSchema is a schema, shown as a table of its members.
type docsSchema struct {
	Name   string
	Type   docsType // type of a schema without members
	Fields []docsField
}

type docsField struct {
	Name, Description string
	Type              docsType
	Required          bool
	Rules             []string
}

// docsType is a readable type. A word with a Link is the name of a schema.
type docsType []docsWord

type docsWord struct {
	Text string
	Link bool
}

func docsSchemas(doc *huma.OpenAPI) (list []docsSchema) {
	all := doc.Components.Schemas.Map()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		d := docsSchema{Name: name}
		if len(all[name].Properties) == 0 {
			d.Type = typeOf(all[name])
		}
		for _, field := range members(all[name]) {
			p := all[name].Properties[field]
			d.Fields = append(d.Fields, docsField{field, p.Description, typeOf(p), slices.Contains(all[name].Required, field), rules(p)})
		}
		list = append(list, d)
	}
	return list
}

// members returns the required members in the order of their declaration, and then the other members.
func members(s *huma.Schema) []string {
	list := slices.Clone(s.Required)
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		if !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	return list
}

// bodyType returns the types that a body may have in all its media types.
func bodyType(content map[string]*huma.MediaType) (t docsType) {
	for _, media := range slices.Sorted(maps.Keys(content)) {
		if strings.HasSuffix(media, "json") {
			t = t.or(typeOf(content[media].Schema))
		} else {
			t = t.or(docsType{{Text: media}})
		}
	}
	return t
}

func (t docsType) or(other docsType) docsType {
	if len(other) == 1 && slices.Contains(t, other[0]) {
		return t
	}
	if len(t) > 0 {
		t = append(t, docsWord{Text: " or "})
	}
	return append(t, other...)
}

func typeOf(s *huma.Schema) (t docsType) {
	if name, ok := strings.CutPrefix(s.Ref, "#/components/schemas/"); ok {
		return docsType{{name, true}}
	}
	for _, one := range slices.Concat(s.AnyOf, s.OneOf) {
		t = t.or(typeOf(one))
	}
	inner, isMap := s.AdditionalProperties.(*huma.Schema)
	switch {
	case len(t) > 0:
	case s.Type == huma.TypeArray:
		t = append(docsType{{Text: "array of "}}, typeOf(s.Items)...)
	case s.Type == huma.TypeObject && isMap:
		t = append(docsType{{Text: "object of "}}, typeOf(inner)...)
	case s.Format == "date-time":
		t = docsType{{Text: "time (RFC 3339)"}}
	case s.Type == "":
		t = docsType{{Text: "any"}}
	default:
		t = docsType{{Text: s.Type}}
	}
	if s.Nullable {
		t = t.or(docsType{{Text: "null"}})
	}
	return t
}

// rules returns the constraints on a value beside its type.
func rules(s *huma.Schema) (list []string) {
	add := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	if len(s.Enum) > 0 {
		add("one of: %s", listed(s.Enum))
	}
	if known, ok := s.Extensions[extensibleEnum].([]any); ok {
		add("today one of: %s", listed(known))
	}
	if only, ok := s.Extensions[literal]; ok {
		add("always %v", only)
	}
	number := func(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
	if s.Minimum != nil {
		add("at least %s", number(*s.Minimum))
	}
	if s.Maximum != nil {
		add("at most %s", number(*s.Maximum))
	}
	for _, bound := range []struct {
		n    *int
		text string
	}{
		{s.MinLength, "at least %d long"},
		{s.MaxLength, "at most %d long"},
		{s.MinItems, "at least %d items"},
		{s.MaxItems, "at most %d items"},
		{s.MaxProperties, "at most %d members"},
	} {
		if bound.n != nil {
			add(bound.text, *bound.n)
		}
	}
	if s.Pattern != "" {
		add("matches %s", s.Pattern)
	}
	return list
}

func listed(values []any) string {
	words := make([]string, len(values))
	for i, value := range values {
		words[i] = fmt.Sprint(value)
	}
	return strings.Join(words, ", ")
}
