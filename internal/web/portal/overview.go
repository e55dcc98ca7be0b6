package portal

import (
	"net/http"
	"net/url"
	"sync"

	"quotad/internal/web/page"
	"quotad/internal/web/parts"
)

// overviewData is the data of the portal's first page. Each part can fail alone.
type overviewData struct {
	Outlook *parts.Outlook
	Limits  parts.LimitsData
	Stream  string           // address of the event stream
	Failed  bool             // the limits could not be read
	Usage   *parts.UsageData // nil if it could not be read
	Cost    *parts.CostData
	CostOut bool          // the cost could not be read
	Refused *refusalsData // nil if they could not be read
}

func (v *visit) overview() (*page.View, error) {
	if v.Customer.ArchivedAt != nil {
		return v.archived(), nil
	}
	data := overviewData{}
	shown := &page.View{Sheet: "overview", Title: "Usage and limits", Tab: "overview", Live: true}
	state, err := v.overviewParts(&data)
	switch problem, asked := page.ProblemOf(err); {
	case asked && problem.Status == http.StatusUnprocessableEntity: // an invalid attribute value
		return nil, err
	case err != nil:
		v.Note("the limits", err)
		data.Failed, shown.Live = true, false
	default:
		data.Limits = state.Limits()
		query, _ := parts.Attributes(v.Visit)
		data.Stream = (&url.URL{Path: "/portal/live", RawQuery: query.Encode()}).String()
		data.Outlook = state.Outlook(v.Visit)
	}
	shown.Data = data
	return shown, nil
}

// overviewParts queries the parts of the page concurrently. The error is the error of the limits. Any other part
// that failed is left out.
func (v *visit) overviewParts(data *overviewData) (state *parts.Standing, err error) {
	var all sync.WaitGroup
	v.Beside(&all, "the usage", func() (err error) {
		data.Usage, _, err = parts.UsageOf(v.Visit, v.Customer, "/portal/usage", nil)
		if err == nil {
			data.Usage.More = "/portal/usage"
		}
		return err
	}, func() { data.Usage = nil })
	v.Beside(&all, "the cost", func() (err error) {
		data.Cost, err = parts.CostOf(v.Visit)
		return err
	}, func() { data.Cost, data.CostOut = nil, true })
	v.Beside(&all, "the refusals", func() (err error) {
		data.Refused, err = v.refusals(url.Values{"limit": {"5"}})
		return err
	}, func() { data.Refused = nil })
	state, err = parts.StandingOf(v.Visit)
	all.Wait()
	return state, err
}

func (v *visit) archived() *page.View {
	return &page.View{Sheet: "archived", Title: "This account is closed", Tab: "overview", Data: struct{ Since string }{
		v.Customer.ArchivedAt.In(v.Zone).Format("2 January 2006"),
	}}
}

func (v *visit) usagePage() (*page.View, error) {
	data, _, err := parts.UsageOf(v.Visit, v.Customer, "/portal/usage", v.R.URL.Query())
	if err != nil {
		return nil, err
	}
	shown := &page.View{Sheet: "usage", Title: "Usage", Tab: "usage", Data: data}
	if len(data.Wrong) > 0 {
		shown.Status = http.StatusUnprocessableEntity
	}
	return shown, nil
}

// usageFile returns the page's usage as a CSV file.
func (v *visit) usageFile() (*page.View, error) {
	data, points, err := parts.UsageOf(v.Visit, v.Customer, "/portal/usage", v.R.URL.Query())
	if err != nil {
		return nil, err
	}
	if len(data.Wrong) > 0 {
		return &page.View{Status: http.StatusUnprocessableEntity, Sheet: "usage", Title: "Usage", Tab: "usage", Data: data}, nil
	}
	return &page.View{File: parts.UsageCSV(data.Meter, points, v.Zone)}, nil
}
