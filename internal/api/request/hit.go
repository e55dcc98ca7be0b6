package request

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"quotad/client"
	"quotad/internal/plans"
	"quotad/internal/quota/model"
)

// CheckHit returns all faults of a decoded hit. least is the smallest allowed cost. Refunds, reservations and
// imports share members with a hit.
func CheckHit(in *client.HitRequest, least int64) (bad model.FieldErrors) {
	refuse := func(field, detail string) { bad = append(bad, model.FieldError{Field: field, Detail: detail}) }
	switch {
	case in.Customer == "":
		refuse("customer", "is required")
	case !plans.ValidCustomerKey(in.Customer):
		refuse("customer", plans.CustomerKeyRule)
	}
	switch {
	case in.Meter == "":
		refuse("meter", "is required")
	case !plans.ValidKey(in.Meter):
		refuse("meter", plans.KeyRule)
	}
	if in.Cost != nil && (*in.Cost < least || *in.Cost > model.MaxNumber) {
		refuse("cost", fmt.Sprintf("must be between %d and %d", least, model.MaxNumber))
	}
	if in.ID != nil {
		if wrong := CheckID(*in.ID); wrong != "" {
			refuse("id", wrong)
		}
	}
	if in.Overrun && in.DryRun {
		refuse("overrun", "does not go with dry_run: what was spent already is charged, or left out")
	}
	return append(bad, CheckAttributes(in.Attributes, "attributes")...)
}

// CheckAttributes returns the faults of attributes in the order of their names. parent is the path of the
// attributes. Attribute values become parts of counter keys.
func CheckAttributes(attributes map[string]string, parent string) (bad model.FieldErrors) {
	refuse := func(field, detail string) { bad = append(bad, model.FieldError{Field: field, Detail: detail}) }
	if len(attributes) > model.MaxAttributes {
		refuse(parent, fmt.Sprintf("must not have more than %d names", model.MaxAttributes))
		return bad
	}
	for name, value := range attributes {
		if len(name) > model.MaxAttributeName || !plans.ValidName(name) {
			refuse(parent+"."+name, "the name must be 1 to 64 letters, digits or . _ : -")
		}
		switch {
		case len(value) > model.MaxAttributeValue:
			refuse(parent+"."+name, "the value must not have more than 200 bytes")
		case strings.ContainsRune(value, 0) || !utf8.ValidString(value):
			refuse(parent+"."+name, "the value must be UTF-8 without NUL characters")
		}
	}
	slices.SortStableFunc(bad, func(a, b model.FieldError) int { return strings.Compare(a.Field, b.Field) })
	return bad
}
