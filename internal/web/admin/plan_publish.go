package admin

import (
	"net/http"
	"strconv"

	"quotad/internal/web/page"
)

type reviewData struct {
	*planPage
	Changes  []change // from the draft's base version to the draft
	Theirs   []change // from the draft's base version to the newest version
	Problems []draftProblem
	ApplyTo  string
	ETagOf   string // ETag of the reviewed draft
}

// planReview shows the changes that publishing the draft would make.
func (v *visit) planReview() (*page.View, error) {
	p, err := v.meetPlan("publish")
	if err != nil {
		return nil, err
	}
	return v.review(p, http.StatusOK)
}

func (v *visit) review(p *planPage, status int) (*page.View, error) {
	d := &reviewData{planPage: p, ApplyTo: "all"}
	if p.Draft {
		base := p.force
		if p.Overtaken {
			var err error
			if base, err = v.version(p.Key, p.BasedOn); err != nil {
				return nil, err
			}
			d.Theirs = changes(base, p.force)
		}
		d.Changes, d.ETagOf = changes(base, p.current), p.etag
		d.Problems = p.problems()
		if textOf(p.current["apply_to"]) == "new" {
			d.ApplyTo = "new"
		}
	}
	return &page.View{Status: status, Sheet: "plan-publish", Title: p.Title, Tab: "plans", Data: d}, nil
}

// version returns a version of a plan as a document, or nil if there is none.
func (v *visit) version(key string, n int) (document, error) {
	if n == 0 {
		return nil, nil
	}
	d, err := v.stored(versionPath(key, n))
	if d == nil {
		return nil, err
	}
	return d.without("key", "version", "created_at"), err
}

// publishPlan publishes the draft as the plan's next version, unless another version was published after the
// draft was started. In that case, publishPlan writes nothing and shows both sets of changes.
func (v *visit) publishPlan() (*page.View, error) {
	fields := v.Form
	p, err := v.meetPlan("publish")
	if err != nil {
		return nil, err
	}
	if !p.Draft || fields.Get("draft") != p.etag {
		p.Failed = "The draft was changed since you looked at it. Look again: nothing was published."
		return v.review(p, http.StatusPreconditionFailed)
	}
	body := p.current.without("apply_to")
	if fields.Get("apply_to") == "new" {
		body["apply_to"] = "new"
	}
	etag := ""
	if p.BasedOn > 0 {
		etag = strconv.Quote(strconv.Itoa(p.BasedOn))
	}
	err = v.API.PutPlan(v.Ctx(), p.Key, etag, body)
	if problem, told := page.ProblemOf(err); told && problem.Status < http.StatusInternalServerError && problem.Status != http.StatusForbidden {
		if p, err = v.meetPlan("publish"); err != nil {
			return nil, err
		}
		p.Failed = p.said(problem)
		if problem.Status == http.StatusPreconditionFailed {
			p.Failed = "Somebody else has published meanwhile. Nothing was published by you: below is what they changed, and what you change."
		}
		return v.review(p, problem.Status)
	}
	if err != nil {
		return nil, err
	}
	err = v.API.DeleteDraft(v.Ctx(), p.Key)
	if page.NotThere(err) {
		err = nil
	}
	return &page.View{To: p.URL + "?done=published"}, err
}

// rebasePlan makes the plan's newest version the base of the unchanged draft.
func (v *visit) rebasePlan() (*page.View, error) {
	p, err := v.meetPlan("publish")
	if err != nil {
		return nil, err
	}
	if !p.Draft {
		return &page.View{To: p.URL}, nil
	}
	err = v.API.PutDraft(v.Ctx(), p.Key, p.etag, true, []byte(p.draft.Plan))
	return &page.View{To: p.URL + "/publish?done=rebased"}, err
}

type versionsData struct {
	*planPage
	Versions []versionRow
	Next     string
}

type versionRow struct {
	Number        int
	At, For, JSON string
	Changes       []change
}

// planVersions lists the versions of a plan with the changes of each version.
func (v *visit) planVersions() (*page.View, error) {
	p, err := v.meetPlan("versions")
	if err != nil {
		return nil, err
	}
	d := &versionsData{planPage: p}
	if p.Version > 0 {
		if err := v.listVersions(d); err != nil {
			return nil, err
		}
	}
	return &page.View{Sheet: "plan-versions", Title: p.Title, Tab: "plans", Data: d}, nil
}

// versionsShown is the number of versions on the page, the newest first.
const versionsShown = 20

func (v *visit) listVersions(d *versionsData) error {
	last := d.Version
	if asked, err := strconv.Atoi(v.R.URL.Query().Get("before")); err == nil && asked > 1 && asked <= d.Version {
		last = asked - 1
	}
	is, err := v.stored(versionPath(d.Key, last))
	for n := last; err == nil && is != nil && n > max(0, last-versionsShown); n-- {
		var was document
		if n > 1 {
			if was, err = v.stored(versionPath(d.Key, n-1)); err != nil {
				return err
			}
		}
		row := versionRow{Number: n, At: textOf(is["created_at"]), For: "everyone"}
		if textOf(is["apply_to"]) == "new" {
			row.For = "new customers"
		}
		if was != nil {
			row.Changes = changes(was, is)
		}
		d.Versions, is = append(d.Versions, row), was
	}
	if last > versionsShown {
		d.Next = d.URL + "/versions?before=" + strconv.Itoa(last-versionsShown+1)
	}
	return err
}
