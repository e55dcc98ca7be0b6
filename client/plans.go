package client

// MeterRequest is the body of PUT /v1/meters/{key}.
type MeterRequest struct {
	Unit string `json:"unit" minLength:"1" maxLength:"200" doc:"What one unit is called, such as request."`
	Name string `json:"name,omitempty" maxLength:"200" doc:"A name for people."`
}

// Meter is what is counted, in a unit.
type Meter struct {
	Key  string `json:"key"`
	Unit string `json:"unit"`
	Name string `json:"name"`
}
