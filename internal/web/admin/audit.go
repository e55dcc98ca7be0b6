package admin

import (
	"cmp"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"quotad/internal/web/page"
)

func (v *visit) audit() (*page.View, error) {
	list, err := v.API.Audit(v.Ctx(), v.Query("actor", "target", "from", "to"))
	asked := v.R.URL.Query()
	sheet := &staffPage{
		Intro: "Every change by an admin, by page or API. Nothing here can be edited.",
		Search: &search{[]field{
			{Name: "target", Label: "What was changed", Kind: kindText, Value: asked.Get("target"), Help: "customers/acme"},
			{Name: "actor", Label: "Key's id", Kind: kindText, Value: asked.Get("actor")},
			{Name: "from", Label: "From", Kind: kindText, Value: asked.Get("from"), Help: "2026-01-31T00:00:00Z"},
			{Name: "to", Label: "To", Kind: kindText, Value: asked.Get("to")},
		}},
	}
	if err != nil {
		return v.refusedSearch(sheet, err, "Audit", "audit")
	}
	t := &table{Caption: "Changes", Head: heads("When", "Who", "What", "On", "Before and after"), Empty: "Nothing was changed", Next: v.Next(list.NextCursor)}
	for i := range list.Items {
		a := &list.Items[i]
		who, request := a.Actor, ""
		if a.ActorName != nil {
			who = *a.ActorName
		}
		if a.RequestID != nil {
			request = *a.RequestID
		}
		t.Rows = append(t.Rows, []cell{
			{Text: a.At.In(v.Zone).Format("2 Jan 2006, 15:04:05"), Sub: request},
			{Text: who, Sub: a.Actor},
			text(a.Action), mono(a.Target),
			{Fold: []string{brief(jsontext.Value(a.Before)), brief(jsontext.Value(a.After))}},
		})
	}
	sheet.Sections = []section{{Table: t}}
	return sheet.shownAs("Audit", "audit"), nil
}

// maxBrief bounds the size in bytes of a document that a list shows.
const maxBrief = 4000

// brief returns a document formatted on several lines.
func brief(document jsontext.Value) string {
	if len(document) == 0 || document.Kind() == 'n' {
		return "–"
	}
	text := document.Clone()
	if err := text.Indent(jsontext.WithIndent("  ")); err != nil {
		return "–"
	}
	if len(text) > maxBrief {
		return strings.ToValidUTF8(string(text[:maxBrief]), "") + " …"
	}
	return string(text)
}

// refusedSearch shows the search form of a list with the API's error instead of results.
func (v *visit) refusedSearch(sheet *staffPage, err error, title, tab string) (*page.View, error) {
	f := &form{Fields: sheet.Search.Fields}
	problem, told := page.ProblemOf(err)
	if !told || !f.tell(problem) {
		return nil, err
	}
	wrong := f.Wrong
	for _, d := range f.Fields {
		if d.Wrong != "" {
			wrong = d.Label + ": " + d.Wrong
		}
	}
	whole := page.MessageOf(err)
	sheet.Sections = []section{{Failed: cmp.Or(wrong, whole.Text)}}
	shown := sheet.shownAs(title, tab)
	shown.Status = whole.Status
	return shown, nil
}
