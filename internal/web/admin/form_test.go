package admin

import (
	"encoding/json"
	"fmt"
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
	invoice := &client.Invoice{Lines: []client.Line{{N: 1, AmountMinor: 5}}, Payments: []client.Payment{{N: 1}}}
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
		{payForm("", "EUR"), client.PayRequest{}, ""},
		{reverseForm("", invoice), client.ReverseRequest{}, "payment"},
		{withdrawForm(s, "EUR"), client.WithdrawRequest{}, "credit"},
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

// Percents are typed as people write them, and shown with commas between.
func TestPercentsAreRead(t *testing.T) {
	t.Parallel()
	f := planField{Name: "notify", Kind: asPercents}
	for typed, want := range map[string]string{"80, 100": "80, 100", "80%, 100 %": "80, 100", "50 80;100": "50, 80, 100", "": ""} {
		value, wrong := f.read(typed, "USD")
		if list, _ := value.([]any); wrong != "" || showNumbers(&f, list) != want {
			t.Errorf("%q is %v, %s", typed, value, wrong)
		}
	}
	if value, wrong := f.read("a lot", "USD"); wrong == "" {
		t.Errorf("a lot is %v", value)
	}
}

// showNumbers shows what was read as it is shown when it comes from a document.
func showNumbers(f *planField, list []any) string {
	stored := []any{}
	for _, n := range list {
		stored = append(stored, json.Number(fmt.Sprint(n)))
	}
	return f.show(stored, "USD")
}
