package respond

import (
	"quotad/client"
	"quotad/internal/billing/invoices"
)

// LevelPoint returns a point of a level meter's usage that begins at an instant, µs.
func LevelPoint(start int64, p *invoices.LevelPoint) client.UsagePoint {
	return client.UsagePoint{Start: Time(start), UsageLevel: &client.UsageLevel{Last: p.Last, Peak: p.Peak, Average: p.Average.String()}}
}
