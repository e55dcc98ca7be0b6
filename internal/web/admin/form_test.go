package admin

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"quotad/client"
)

// The fields of a form are members of the request that it becomes, but for those of the path.
func TestFormsAreRequests(t *testing.T) {
	t.Parallel()
	s := &subject{zone: time.UTC}
	invoice := &client.Invoice{Lines: []client.Line{{N: 1, AmountMinor: 5}}}
	for _, c := range []struct {
		form    *form
		request any
		path    string // the field that is a part of the path
	}{
		{customerForm(nil), client.CustomerRequest{}, "key"},
		{customerForm(&client.Customer{}), client.CustomerRequest{}, ""},
		{meterForm(), client.MeterRequest{}, "key"},
		{keyForm(), client.KeyRequest{}, ""},
		{overrideForm(s, nil), client.OverrideRequest{}, "name"},
		{creditForm(s, "EUR"), client.CreditRequest{}, ""},
		{chargeForm(s, "EUR"), client.ChargeRequest{}, ""},
		{adjustmentForm(s), client.AdjustmentRequest{}, ""},
		{payForm(""), client.PayRequest{}, ""},
		{voidForm(""), client.VoidRequest{}, ""},
		{noteForm("", invoice), client.NoteRequest{}, "line-1"},
	} {
		members := []string{c.path}
		for f := range reflect.TypeOf(c.request).Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			members = append(members, name)
		}
		for _, d := range c.form.Fields {
			if !slices.Contains(members, d.Name) {
				t.Errorf("%s: %T has no %s", c.form.Name, c.request, d.Name)
			}
		}
	}
}

// The fields of the plan editor are those of a plan.
func TestPlanFieldsAreThePlans(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		fields []planField
		of     reflect.Type
	}{{planFields, reflect.TypeFor[client.PlanInput]()}, {limitFields, reflect.TypeFor[client.Limit]()}, {priceFields, reflect.TypeFor[client.Price]()}} {
		var members []string
		for _, f := range reflect.VisibleFields(c.of) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			members = append(members, name)
		}
		for _, f := range c.fields {
			if !slices.Contains(members, f.Name) {
				t.Errorf("%s has no %s", c.of, f.Name)
			}
		}
	}
}
