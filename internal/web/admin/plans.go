package admin

import (
	"strconv"

	"quotad/internal/web/page"
	"quotad/internal/web/parts"
	"quotad/internal/web/words"
)

// plans lists the plans. The files plan_*.go contain the pages of one plan.
func (v *visit) plans() (*page.View, error) {
	list, err := v.API.Plans(v.Ctx(), v.Query())
	if err != nil {
		return nil, err
	}
	t := &table{Caption: "Plans", Head: []column{
		{Text: "Plan"},
		{Text: "Version", Numeric: true},
		{Text: "Limits", Numeric: true},
		{Text: "Base price", Numeric: true},
		{Text: "Prices", Numeric: true},
		{Text: "Published"},
	}, Empty: "There is no plan yet", Next: v.Next(list.NextCursor)}
	for i := range list.Items {
		p := &list.Items[i]
		base := words.Money(p.BasePriceMinor, p.Currency) + " " + parts.PerInterval(p)
		t.Rows = append(t.Rows, []cell{
			{Text: p.Name, Sub: p.Key, URL: "/admin/plans/" + page.Segment(p.Key)},
			amount(strconv.Itoa(p.Version)), amount(strconv.Itoa(len(p.Limits))),
			amount(base), amount(strconv.Itoa(len(p.Prices))), v.instant(&p.CreatedAt),
		})
	}
	sheet := &staffPage{Intro: "A plan is never changed: publishing makes a new version of it.", Done: v.doneHere(), Sections: []section{{Table: t}}}
	return sheet.shownAs("Plans", "plans"), nil
}
