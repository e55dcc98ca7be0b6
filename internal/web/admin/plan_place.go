package admin

import (
	"cmp"
	"strconv"
	"strings"

	"quotad/client"
	"quotad/internal/web/words"
)

// draftProblem is a reason why a draft cannot be published, with the field that it concerns.
type draftProblem struct {
	Where  string // name of the field for people
	Detail string
	URL    string // link to the field in the editor; empty if the editor has no such field

	field string // path of the field; empty if the editor has no such field
}

// placeOf returns the problem for a path in a draft. typed contains the draft's fields. A problem of a part of a
// field, such as a tier, belongs to that field. A problem of a whole item is shown beside its first field.
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

// within reports whether a path is a member or is inside the member.
func within(path, member string) bool {
	rest, is := strings.CutPrefix(path, member)
	return is && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// fieldID returns the HTML id of a field in the editor.
func fieldID(path string) string { return "f-" + idOf(path) }

// said returns the text of a draft's problem.
func (p *planPage) said(problem *client.Problem) string {
	typed := p.current.fields()
	return words.Said(problem, func(path string) string { return p.placeOf(path, "", typed).Where })
}

// problems returns all reasons why the draft cannot be published.
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

// idOf converts a path into an HTML id.
func idOf(path string) string {
	return strings.NewReplacer("[", "-", "].", "-", "]", "").Replace(path)
}
