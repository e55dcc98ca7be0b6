package billing

import (
	"reflect"
	"testing"

	"quotad/client"
	"quotad/internal/billing"
	"quotad/internal/billing/rating"
	"quotad/internal/billing/reconcile"
	"quotad/internal/testkit"
)

// TestWireTypesAgree: what stands twice, in the client and where it is written or read, has the same fields.
func TestWireTypesAgree(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		one, other reflect.Type
		without    []string
	}{
		{reflect.TypeFor[payerRequest](), reflect.TypeFor[client.Buyer](), nil},
		{reflect.TypeFor[billingRequest](), reflect.TypeFor[client.Account](), []string{"currency", "billed_until", "test_clock", "warnings"}},
		{reflect.TypeFor[billing.Seller](), reflect.TypeFor[client.Seller](), []string{"credit_note_prefix", "next_number", "warnings"}},
		{reflect.TypeFor[rating.TierAmount](), reflect.TypeFor[client.TierLine](), nil},
		{reflect.TypeFor[reconcile.Report](), reflect.TypeFor[client.Report](), nil},
		{reflect.TypeFor[reconcile.Archived](), reflect.TypeFor[client.Archived](), nil},
		{reflect.TypeFor[reconcile.Check](), reflect.TypeFor[client.Check](), nil},
		{reflect.TypeFor[reconcile.Disagreement](), reflect.TypeFor[client.Disagreement](), nil},
	} {
		testkit.SameFields(t, c.one, c.other, c.without...)
	}
}
