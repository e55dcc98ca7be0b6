package admin

import (
	"cmp"
	"strconv"
	"strings"

	"quotad/client"
	"quotad/internal/web/words"
)

// A draftProblem is a reason why a draft cannot be published, with the field that causes the problem.
type draftProblem struct {
	Where  string // name of the field for people
	Detail string
	URL    string // address of the field in the editor, or empty if there is no field

	field string // path of the field in the editor, or empty if there is no field
}

// placeOf returns a problem with the editor's field for a path in a draft. typed contains the draft's fields. A
// problem inside a field, such as in a tier, belongs to that field. A problem of a whole item belongs to the
// item's first field.
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

// within reports whether a path is the member or lies inside the member.
func within(path, member string) bool {
	rest, is := strings.CutPrefix(path, member)
	return is && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// fieldID returns the HTML id of an editor field.
func fieldID(path string) string { return "f-" + idOf(path) }

// said returns the text of an API problem with the draft.
func (p *planPage) said(problem *client.Problem) string {
	typed := p.current.fields()
	return words.Said(problem, func(path string) string { return p.placeOf(path, "", typed).Where })
}

// problems returns the reasons why the draft cannot be published.
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

// idOf returns a path converted to an HTML id.
func idOf(path string) string {
	return strings.NewReplacer("[", "-", "].", "-", "]", "").Replace(path)
}
