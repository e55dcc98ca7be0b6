package admin

import (
	"cmp"
	"strconv"
	"strings"

	"quotad/client"
	"quotad/internal/web/words"
)

// A draftProblem is what keeps a draft from being published, and the field that it is about.
type draftProblem struct {
	Where  string // what people call the field
	Detail string
	URL    string // of the field in the editor; empty: the editor has none

	field string // the field's path; empty: the editor has none
}

// placeOf is the problem of a path in a draft. typed are the draft's fields. A problem of something
// within a field, such as a tier, is that field's; one of a whole item stands beside its first field.
func (p *planPage) placeOf(path, detail string, typed map[string]string) draftProblem {
	found := draftProblem{Detail: words.Plainly(detail)}
	at := func(f *planField, field string) {
		found.Where, found.field, found.URL = f.Label, field, p.URL+"#"+fieldID(field)
	}
	for i := range planFields {
		if f := &planFields[i]; within(path, f.Name) {
			at(f, f.Name)
			return found
		}
	}
	for _, list := range planLists {
		n, _ := strconv.Atoi(typed[list.name])
		for i := range n {
			item := list.name + "[" + strconv.Itoa(i) + "]"
			if !within(path, item) {
				continue
			}
			of := strings.ToUpper(list.item[:1]) + list.item[1:] + " "
			of += cmp.Or(typed[pathOf(list.name, i, list.fields[0].Name)], strconv.Itoa(i+1))
			for j := range list.fields {
				if f := &list.fields[j]; within(path, item+"."+f.Name) {
					at(f, item+"."+f.Name)
					found.Where = of + ", " + strings.ToLower(f.Label)
					return found
				}
			}
			at(&list.fields[0], item+"."+list.fields[0].Name)
			found.Where = of
			return found
		}
	}
	found.Where = words.PathWords(path)
	return found
}

// within reports whether a path is a member, or lies in it.
func within(path, member string) bool {
	rest, is := strings.CutPrefix(path, member)
	return is && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// fieldID is the id of a field of the editor.
func fieldID(path string) string { return "f-" + idOf(path) }

// said is what a problem of the draft says.
func (p *planPage) said(problem *client.Problem) string {
	typed := p.current.fields()
	return words.Said(problem, func(path string) string { return p.placeOf(path, "", typed).Where })
}

// problems are what keeps the draft from being published.
func (p *planPage) problems() (all []draftProblem) {
	if p.draft == nil {
		return nil
	}
	typed := p.current.fields()
	for _, e := range p.draft.Problems {
		all = append(all, p.placeOf(e.Field, e.Detail, typed))
	}
	return all
}

// idOf is a path as an id of HTML.
func idOf(path string) string {
	return strings.NewReplacer("[", "-", "].", "-", "]", "").Replace(path)
}
