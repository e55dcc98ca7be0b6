package plans

import (
	"maps"
	"math"
	"slices"
	"strings"

	"quotad/internal/calendar"
	"quotad/internal/quota/model"
)

// The limits on a customer's metadata: the number of entries, and the bytes of a name and of a value.
const (
	maxMetadata      = 50
	maxMetadataKey   = 100
	maxMetadataValue = 500
)

// Check returns the errors of a customer, except for errors of its plan that only the database can
// detect. Check converts the name and the features to their stored form.
func (in *CustomerInput) Check(key string) model.FieldErrors {
	var bad faults
	if !ValidCustomerKey(key) {
		bad.add("key", CustomerKeyRule)
	} else if strings.HasPrefix(key, ErasedPrefix) {
		bad.add("key", "must not begin with %s, as erased customers' do: choose another", ErasedPrefix)
	}
	bad.name("name", &in.Name, true)
	bad.key("plan", in.Plan)
	if in.PlanVersion != nil {
		bad.within("plan_version", int64(*in.PlanVersion), 1, math.MaxInt32)
	}
	if _, err := calendar.Location(in.Timezone); in.Timezone == "" {
		bad.add("timezone", "must be an IANA timezone, such as UTC or Europe/Berlin; left out it is UTC")
	} else if err != nil {
		bad.add("timezone", "%q is no IANA timezone, such as UTC or Europe/Berlin; capitals count", Shorten(in.Timezone))
	}
	if in.BillingAnchor != "" {
		if _, err := calendar.ParseAnchor(in.BillingAnchor); err != nil {
			bad.add("billing_anchor", "must be a wall clock such as 2026-01-31T00:00:00, in the years %d to %d",
				calendar.MinAnchorYear, calendar.MaxAnchorYear)
		}
	}
	in.checkMetadata(&bad)
	in.Features = checkFeatures(&bad, in.Features)
	return bad.list
}

// ChangeRule is the error text for a change of a plan with costs that does not specify when it applies.
const ChangeRule = `must be said, since one of the plans costs money: "now" ends the billing period here, ` +
	`and limits and prices count at once; "limits_now" lets the limits count at once, and the prices from the next period on. ` +
	`Or leave the plan as it is and PUT …/scheduled-change: then limits and prices count from the end of the period on`

// CheckScheduled returns the errors of a scheduled change, except for errors of its plan that only the
// database can detect.
func CheckScheduled(plan string, pin *int, until string) model.FieldErrors {
	var bad faults
	bad.key("plan", plan)
	if pin != nil {
		bad.within("plan_version", int64(*pin), 1, math.MaxInt32)
	}
	if until != "" && until != UntilPeriodEnd && until != UntilBaseEnd {
		bad.add("when", "must be %q or %q, or left out: %q is the end of all the periods that the running base price is for", UntilPeriodEnd, UntilBaseEnd,
			UntilBaseEnd)
	}
	return bad.list
}

func (in *CustomerInput) checkMetadata(bad *faults) {
	if len(in.Metadata) > maxMetadata {
		bad.add("metadata", "must have at most %d entries", maxMetadata)
		return
	}
	for _, key := range slices.Sorted(maps.Keys(in.Metadata)) {
		if key == "" || len(key) > maxMetadataKey || !PlainText(key) {
			bad.add("metadata", "%q is not a name: it must be 1 to %d bytes without control characters", Shorten(key), maxMetadataKey)
			continue
		}
		if value := in.Metadata[key]; len(value) > maxMetadataValue || !PlainText(value) {
			bad.add("metadata."+key, "must be at most %d bytes without control characters", maxMetadataValue)
		}
	}
}
