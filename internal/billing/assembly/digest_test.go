package assembly_test

import (
	"bytes"
	"encoding/hex"
	"reflect"
	"strings"
	"testing"

	"quotad/internal/billing"
	"quotad/internal/billing/assembly"
)

// A digest changes with whatever an invoice says, and with nothing else. Each field is tried,
// so that a new one has to be put on one of the two sides.
func TestDigest(t *testing.T) {
	inv := invoice(t, vat("19", false), 100)
	inv.Lines[0].Tiers = []billing.TierLine{{Quantity: "1", Amount: "1"}}
	inv.Seller.Address, inv.Buyer.Address = []string{"Here 1"}, []string{"There 2"}
	inv.Seller.Payment, inv.Seller.Footer, inv.Notes = []string{"IBAN"}, []string{"Thanks"}, []string{"Note"}
	first := digest(t, inv)
	loose := map[string]bool{
		"Status": true, "CustomerKey": true, "DueDays": true, "FinalizeAt": true, "Held": true, "Reference": true, "VoidReason": true,
		"Digested": true, "Seller.Prefix": true, "TestClock": true, "Waiting": true, "OfNumber": true, "CreditedMinor": true,
		"PaidAt": true, "Payments": true, "NotedMinor": true, "Overdue": true, "Money": true, "Lines[0].BaseInvoice": true, "Lines[0].BaseLine": true,
	}
	changeEach(reflect.ValueOf(&inv).Elem(), "", func(path string) {
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
	same(t, "digest", hex.EncodeToString(digest(t, inv)), "fd641677d224b006d401d7e6447e347196e35ab16d48428f2b574efacc71564b")
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
