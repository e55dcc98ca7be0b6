package assembly_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"quotad/internal/billing"
	"quotad/internal/billing/assembly"
)

// A digest changes with whatever an invoice says, and with nothing else. Each field is tried,
// so that a new one has to be put on one of the two sides.
func TestDigest(t *testing.T) {
	papers := []string{
		"Seller.Country", "Seller.Registration", "Seller.Email", "Seller.Payment", "Seller.Payment[0]", "Seller.Footer", "Seller.Footer[0]",
		"OrderReference", "Notes", "Notes[0]", "Taxes[0].Note",
	}
	levels := []string{"Lines[0].Level.By", "Lines[0].Level.Exact"}
	digests(t, 4)
	digests(t, 3, levels...)
	digests(t, 2, slices.Concat(levels, papers)...)
	digests(t, 1, append(slices.Concat(levels, papers), "Lines[0].UnitPrice", "Lines[0].PackageSize", "Lines[0].PackagePrice", "Lines[0].Applied",
		"Lines[0].Tiers[0].UnitPrice", "Lines[0].Tiers[0].FlatPrice")...)
}

// digests tries the digests of a form. unsaid are fields that it does not have.
func digests(t *testing.T, form int, unsaid ...string) {
	t.Helper()
	inv := invoice(t, vat("19", false), 100)
	same(t, "form", inv.DigestForm, 4)
	inv.DigestForm = form
	inv.Lines[0].Tiers = []billing.TierLine{{Quantity: 1, Amount: "1"}}
	inv.Seller.Address, inv.Buyer.Address = []string{"Here 1"}, []string{"There 2"}
	inv.Seller.Payment, inv.Seller.Footer, inv.Notes = []string{"IBAN"}, []string{"Thanks"}, []string{"Note"}
	first := digest(t, inv)
	loose := map[string]bool{
		"Status": true, "CustomerKey": true, "DueDays": true, "FinalizeAt": true, "Held": true, "Reference": true, "VoidReason": true,
		"Digested": true, "Seller.Prefix": true, "TestClock": true, "Waiting": true, "OfNumber": true, "CreditedMinor": true,
		"PaidAt": true, "Payments": true, "NotedMinor": true, "Overdue": true, "Money": true, "Lines[0].BaseInvoice": true, "Lines[0].BaseLine": true,
	}
	for _, name := range unsaid {
		loose[name] = true
	}
	changeEach(reflect.ValueOf(&inv).Elem(), "", func(path string) {
		if path == "DigestForm" {
			return // see TestDigestForm
		}
		if changed := !bytes.Equal(digest(t, inv), first); changed == loose[path] {
			t.Errorf("%s: changes the digest: %v", path, changed)
		}
	})
	if !bytes.Equal(digest(t, inv), first) {
		t.Error("the same invoice has another digest")
	}
	// As an invoice is read again: an empty list may be nil.
	empty, null := invoice(t, nil), invoice(t, nil)
	empty.Lines, empty.Taxes, empty.Seller.Address, empty.Buyer.Address = []billing.Line{}, []billing.Tax{}, []string{}, []string{}
	empty.Seller.Payment, empty.Seller.Footer, empty.Notes = []string{}, []string{}, []string{}
	null.Lines, null.Taxes = nil, nil
	if !bytes.Equal(digest(t, empty), digest(t, null)) {
		t.Error("an empty list and none have two digests")
	}
}

// The form of digests must never change: stored ones could not be compared any more.
func TestDigestForm(t *testing.T) {
	inv := billing.Invoice{ID: "i", Number: "Q-1", Lines: []billing.Line{{N: 1}}, Taxes: []billing.Tax{{Name: "VAT"}}}
	for form, want := range map[int]string{
		1: "50afd4dfa52197918726aeda92d5fdd6f63a766b090fbdd29b31e417e90a0402",
		2: "860c82d3d6a05139ed77a5495c721ce5062c1c8949205d96990e30ff01d397e2",
		3: "b8133df7690553eae1d9fa8555c06037e24a58bd4c25a4a83da42bcf71f18d2c",
		4: "a05f293a2aeb6e12c8a27fdef5d1bc98732b3d21c040c76eab50d637a8f10af3",
	} {
		inv.DigestForm = form
		same(t, "digest", hex.EncodeToString(digest(t, inv)), want)
	}
	for _, form := range []int{-1, 0, 5} {
		inv.DigestForm = form
		if sum, err := assembly.Digest(&inv); !errors.As(err, new(*assembly.FormError)) || sum != nil {
			t.Errorf("form %d: %x, %v", form, sum, err)
		}
	}
}

func digest(t *testing.T, inv billing.Invoice) []byte {
	t.Helper()
	sum, err := assembly.Digest(&inv)
	if err != nil || len(sum) != 32 {
		t.Fatal(sum, err)
	}
	return sum
}

// changeEach changes one value within v after the other, and changes it back. The path is
// without the names of embedded structs.
func changeEach(v reflect.Value, path string, changed func(path string)) {
	was := reflect.New(v.Type()).Elem()
	was.Set(v)
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			field := v.Type().Field(i)
			name := path
			if !field.Anonymous {
				name = strings.TrimPrefix(path+"."+field.Name, ".")
			}
			changeEach(v.Field(i), name, changed)
		}
		return
	case reflect.Slice:
		if v.Len() > 0 {
			changeEach(v.Index(0), path+"[0]", changed)
		}
		v.Set(reflect.Append(v.Slice3(0, v.Len(), v.Len()), reflect.New(v.Type().Elem()).Elem()))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
	case reflect.String:
		v.SetString(v.String() + "x")
	case reflect.Bool:
		v.SetBool(!v.Bool())
	default:
		v.SetInt(v.Int() + 1)
	}
	changed(path)
	v.Set(was)
}
