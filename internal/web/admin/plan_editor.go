package admin

import (
	"cmp"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"quotad/client"
	"quotad/internal/plans"
	"quotad/internal/quota/model"
	"quotad/internal/web/page"
	"quotad/internal/web/words"
)

// This file contains the pages of one plan: its draft as a form and as JSON, the effects of the draft, the
// changes, and the versions of the plan. A draft has no effect on customers until it is published.

// planPage is the common data of all pages of one plan.
type planPage struct {
	Key, Title, Tab string
	Version         int    // version in force; 0 if there is none
	Draft           bool   // there is a draft
	Saved           string // time at which the draft was saved
	Overtaken       bool   // a version was published after the draft was begun
	BasedOn         int
	May             bool // the user may change the plan
	Done            string
	URL             string
	Failed          string // the API's error about the form as a whole

	draft   *client.Draft
	etag    string   // entity tag of the draft; empty if there is no draft
	force   document // the newest version, or nil
	current document // the draft, or the version in force, or an empty document
}

// meetPlan reads the plan and its draft.
func (v *visit) meetPlan(tab string) (*planPage, error) {
	key := v.R.PathValue("key")
	if !plans.ValidKey(key) {
		return nil, page.ErrMissing
	}
	p := &planPage{
		Key: key, Title: key, Tab: tab, May: v.isAdmin(), URL: "/admin/plans/" + page.Segment(key),
		Done: planDone[v.R.URL.Query().Get("done")],
	}
	stored, err := v.stored("/v1/plans/" + page.Segment(key))
	if err != nil {
		return nil, err
	}
	if stored != nil {
		p.Version, _ = strconv.Atoi(textOf(stored["version"]))
		p.force = stored.without("key", "version", "created_at")
	}
	if err := v.meetDraft(p); err != nil {
		return nil, err
	}
	switch {
	case p.Draft:
	case p.force != nil:
		p.current = p.force.without("apply_to")
	case !p.May:
		return nil, page.ErrMissing
	default:
		p.current = document{"limits": []any{}, "prices": []any{}}
	}
	if name := textOf(p.current["name"]); name != "" {
		p.Title = name
	}
	return p, nil
}

// planDone contains the texts that confirm a form's action.
var planDone = map[string]string{
	"saved": "Saved. It counts for nobody until it is published.", "discarded": "The draft is gone. What is in force stays.",
	"rebased": "The draft is on the newest version now. Look at what changes before you publish.", "published": "Published. Limits count within a second.",
}

// versionPath returns the API path of a plan's version.
func versionPath(plan string, version int) string {
	return "/v1/plans/" + page.Segment(plan) + "/versions/" + strconv.Itoa(version)
}

// stored reads a document from the API. It returns nil if there is no document.
func (v *visit) stored(path string) (document, error) {
	var d document
	_, err := v.API.Do(v.Ctx(), http.MethodGet, path, nil, nil, &d)
	if page.NotThere(err) {
		return nil, nil
	}
	return d, err
}

func (v *visit) meetDraft(p *planPage) error {
	draft, etag, err := v.API.Draft(v.Ctx(), p.Key)
	if page.NotThere(err) {
		return nil
	}
	if err != nil {
		return err
	}
	p.draft, p.etag = &draft, etag
	if p.current, err = readDocument(p.draft.Plan); err != nil {
		return err
	}
	p.Draft = true
	p.BasedOn, p.Overtaken = p.draft.BasedOn, p.draft.BasedOn != p.draft.LatestVersion
	p.Saved = p.draft.SavedAt.In(v.Zone).Format("2 Jan 2006, 15:04")
	return nil
}

// editorField is a field of the form with the data that the template shows.
type editorField struct {
	planField
	Path, ID, Value, Wrong string
}

type editorItem struct {
	Title, Remove string
	Fields, More  []editorField
	Open          bool // the folded fields are shown
}

type editorList struct {
	Name, Item, Title string
	Count             int
	Items             []editorItem
}

type editorData struct {
	*planPage
	JSON     bool
	Text     string // text of the JSON editor
	TextBad  string
	ETag     string // entity tag of the edited draft; empty for a new draft
	Fields   []editorField
	Lists    []editorList
	Problems []draftProblem
}

func (v *visit) planEditor() (*page.View, error) {
	p, err := v.meetPlan("edit")
	if err != nil {
		return nil, err
	}
	return p.editor(p.current.fields(), p.problems(), v.R.URL.Query().Has("json")).view(http.StatusOK), nil
}

// editor returns the page with these fields and their faults.
func (p *planPage) editor(typed map[string]string, problems []draftProblem, asJSON bool) *editorData {
	d := &editorData{planPage: p, JSON: asJSON, ETag: p.etag, Problems: problems}
	wrong := map[string]string{}
	for _, e := range problems {
		wrong[e.field] = strings.TrimSpace(wrong[e.field] + " " + e.Detail)
	}
	if asJSON {
		d.Text = p.current.pretty()
	}
	make1 := func(f planField, path string) editorField {
		value := typed[path]
		if value == "" && len(f.Options) > 0 {
			value = f.Options[0]
		}
		return editorField{f, path, fieldID(path), value, wrong[path]}
	}
	for _, f := range planFields {
		d.Fields = append(d.Fields, make1(f, f.Name))
	}
	for _, list := range planLists {
		shown := editorList{Name: list.name, Item: list.item, Title: strings.ToUpper(list.name[:1]) + list.name[1:]}
		shown.Count, _ = strconv.Atoi(typed[list.name])
		shown.Count = min(max(0, shown.Count), list.most)
		for i := range shown.Count {
			item := editorItem{Title: typed[pathOf(list.name, i, list.fields[0].Name)], Remove: "remove " + list.name + " " + strconv.Itoa(i)}
			for _, f := range list.fields {
				field := make1(f, pathOf(list.name, i, f.Name))
				if f.More {
					item.More = append(item.More, field)
					item.Open = item.Open || field.Value != "" && !slices.Contains(moreDefaults, field.Value) || field.Wrong != ""
				} else {
					item.Fields = append(item.Fields, field)
				}
			}
			shown.Items = append(shown.Items, item)
		}
		d.Lists = append(d.Lists, shown)
	}
	return d
}

// moreDefaults lists the default values of folded fields.
var moreDefaults = []string{"hard", "allow", "clock", "1us"}

func (d *editorData) view(status int) *page.View {
	return &page.View{Status: status, Sheet: "plan-edit", Title: d.Title, Tab: "plans", Data: d}
}

// savePlan stores the draft from the form or its JSON, and does the pressed button's action.
func (v *visit) savePlan() (*page.View, error) {
	fields := v.Form
	p, err := v.meetPlan("edit")
	if err != nil {
		return nil, err
	}
	asJSON := fields.Has("json")
	typed := map[string]string{}
	var problems []draftProblem
	var body any = []byte(fields.Get("json"))
	if !asJSON {
		typed = typedFields(fields)
		leaveForeign(typed, p.current.fields())
		typed = pressed(typed, fields.Get("do"))
		d, wrong := typedDocument(typed, p.current)
		for _, path := range slices.Sorted(maps.Keys(wrong)) {
			problems = append(problems, p.placeOf(path, wrong[path], typed))
		}
		if len(problems) > 0 {
			return p.editor(typed, problems, false).view(http.StatusUnprocessableEntity), nil
		}
		body = d
	}
	err = v.API.PutDraft(v.Ctx(), p.Key, fields.Get("etag"), false, body)
	problem, told := page.ProblemOf(err)
	if !told || problem.Status == http.StatusForbidden || problem.Status >= http.StatusInternalServerError {
		to := p.URL + "?done=saved"
		if asJSON {
			to += "&json"
		}
		return &page.View{To: to}, err
	}
	p.Failed = p.said(problem)
	if problem.Status == http.StatusPreconditionFailed || problem.Status == http.StatusPreconditionRequired {
		p.Failed = "Somebody else has saved this draft meanwhile. What you typed is below and not saved: saving it again replaces theirs."
	}
	for _, e := range problem.Errors {
		problems = append(problems, p.placeOf(e.Field, e.Detail, typed))
	}
	d := p.editor(typed, problems, asJSON)
	if asJSON {
		d.Text, d.TextBad = fields.Get("json"), p.Failed
	}
	return d.view(problem.Status), nil
}

// typedFields returns the form's fields by path.
func typedFields(from url.Values) map[string]string {
	typed := map[string]string{}
	for name := range from {
		typed[name] = from.Get(name)
	}
	return typed
}

// leaveForeign removes the fields that belong only to a limit's previous algorithm, unless the user has entered
// a value in them.
func leaveForeign(typed, shown map[string]string) {
	n, _ := strconv.Atoi(typed["limits"])
	for i := range min(max(0, n), len(typed)) {
		for _, f := range limitFields {
			path, takers := pathOf("limits", i, f.Name), model.TakenBy(f.Name)
			if takers != nil && typed[path] == shown[path] && !slices.Contains(takers, typed[pathOf("limits", i, "algorithm")]) {
				delete(typed, path)
			}
		}
	}
}

// pressed changes the typed values as a button requests: "add limits" or "remove limits 2".
func pressed(typed map[string]string, button string) map[string]string {
	words := strings.Fields(button)
	for _, list := range planLists {
		switch n, _ := strconv.Atoi(typed[list.name]); {
		case len(words) == 2 && words[0] == "add" && words[1] == list.name && n < list.most:
			typed[list.name] = strconv.Itoa(n + 1)
			for _, f := range list.fields {
				delete(typed, pathOf(list.name, n, f.Name))
				if len(f.Options) > 0 {
					typed[pathOf(list.name, n, f.Name)] = f.Options[0]
				}
			}
		case len(words) == 3 && words[0] == "remove" && words[1] == list.name:
			if i, err := strconv.Atoi(words[2]); err == nil {
				typed = withoutItem(typed, list.name, i)
			}
		}
	}
	return typed
}

func (v *visit) discardPlan() (*page.View, error) {
	key := v.R.PathValue("key")
	err := v.API.DeleteDraft(v.Ctx(), key)
	if page.NotThere(err) {
		err = nil
	}
	return &page.View{To: "/admin/plans/" + page.Segment(key) + "?done=discarded"}, err
}

// optionText returns the text of a select's value.
func optionText(value string) string {
	switch value {
	case "":
		return "–"
	case "hard":
		return "refused"
	case "soft":
		return "admitted, and said"
	case "shadow":
		return "a shadow: admitted"
	case "arrears":
		return "after the period"
	case "advance":
		return "before the period"
	}
	return cmp.Or(words.AlgorithmName(value), strings.ReplaceAll(value, "_", " "))
}

// windowText returns the text of a window. Calendar windows are shown without underscores.
func windowText(window string) string { return strings.ReplaceAll(window, "_", " ") }

// dayOf returns the day of an instant in the API's response.
func dayOf(at string) string {
	t, err := time.Parse(time.RFC3339, at)
	if err != nil {
		return at
	}
	return t.Format("2 Jan 2006")
}

// Discard returns the form that deletes the draft.
func (p *planPage) Discard() *form {
	return &form{
		Name: "discard", Action: p.URL + "/discard", Button: "Discard", Class: "danger",
		Ask: "What this draft changes is lost. What is in force stays.", Sure: "Yes, discard it",
	}
}

// Head returns the common data of all pages of the plan, for their templates.
func (p *planPage) Head() *planPage { return p }
