package web

import (
	"net/http"
)

func (v *visit) usagePage() (*view, error) {
	data, _, err := usageOf(v.Visit, v.customer, "/portal/usage", v.r.URL.Query())
	if err != nil {
		return nil, err
	}
	shown := &view{sheet: "usage", title: "Usage", tab: "usage", data: data}
	if len(data.Wrong) > 0 {
		shown.status = http.StatusUnprocessableEntity
	}
	return shown, nil
}

// usageFile is the page's data as CSV.
func (v *visit) usageFile() (*view, error) {
	data, points, err := usageOf(v.Visit, v.customer, "/portal/usage", v.r.URL.Query())
	if err != nil {
		return nil, err
	}
	if len(data.Wrong) > 0 {
		return &view{status: http.StatusUnprocessableEntity, sheet: "usage", title: "Usage", tab: "usage", data: data}, nil
	}
	return &view{file: usageCSV(data.Meter, points, v.zone)}, nil
}
