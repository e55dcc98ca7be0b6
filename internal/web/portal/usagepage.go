package portal

import (
	"net/http"

	"quotad/internal/web/page"
	"quotad/internal/web/parts"
)

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

// usageFile is the page's data as CSV.
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
