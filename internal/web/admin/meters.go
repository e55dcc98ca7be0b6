package admin

import (
	"net/http"

	"quotad/internal/web/page"
)

func (v *visit) meters() (*page.View, error) { return v.metersPage(meterForm()) }

func meterForm() *form {
	return &form{Name: "meter", Title: "New meter, or other words for one", Action: "/admin/meters", Button: "Save", Class: "primary", Fields: []field{
		{Name: "key", Label: "Key", Kind: kindText, Help: "The name in requests, such as api_calls."},
		{Name: "unit", Label: "Unit, of one", Kind: kindText, Help: "Such as call or token."},
		{Name: "name", Label: "Name on pages and invoices", Kind: kindText, Optional: true},
		{Name: "kind", Label: "What it counts", Kind: kindSelect, Optional: true, Help: "Fixed when the meter is made.", Options: []option{
			{Value: "", Text: "as it is; what passes, of a new one"},
			{Value: "flow", Text: "what passes, such as requests"},
			{Value: "level", Text: "what is held, such as seats"},
		}},
	}}
}

func (v *visit) metersPage(f *form) (*page.View, error) {
	list, err := v.API.Meters(v.Ctx(), v.Query())
	if err != nil {
		return nil, err
	}
	t := &table{Caption: "Meters", Head: heads("Key", "Name", "Unit", "Counts"), Empty: "There is no meter yet", Next: v.Next(list.NextCursor)}
	for _, m := range list.Items {
		t.Rows = append(t.Rows, []cell{mono(m.Key), text(m.Name), text(m.Unit), text(map[string]string{"flow": "what passes", "level": "what is held"}[m.Kind])})
	}
	sheet := &staffPage{Intro: "What is counted, and in what unit.", Done: v.doneHere(), Sections: []section{{Table: t}}}
	if v.isAdmin() {
		sheet.Sections[0].Forms = []*form{f}
	}
	return sheet.shownAs("Meters", "meters"), nil
}

func (v *visit) saveMeter() (*page.View, error) {
	return v.sent(post{form: meterForm(), method: http.MethodPut, path: named("/v1/meters/", "key"), to: "/admin/meters?done=saved"}, v.metersPage)
}
