package store_test

import (
	"errors"
	"slices"
	"testing"

	"quotad/internal/plans"
	"quotad/internal/testkit/planstest"
)

func TestEraseOfTheArchived(t *testing.T) {
	t.Parallel()
	s := planstest.PopulatedStore(t)
	if err := s.ArchiveCustomer(t.Context(), "acme"); err != nil {
		t.Fatal(err)
	}
	archived := planstest.Must[*plans.Customer](t)(s.GetCustomer(t.Context(), "acme"))
	erased, err := s.EraseCustomer(t.Context(), "acme")
	if err != nil || !erased.ArchivedAt.Equal(*archived.ArchivedAt) || !erased.ErasedAt.After(*archived.ArchivedAt) {
		t.Errorf("%+v, %v", erased, err)
	}
	for _, key := range []string{"nope", "", "a/b"} {
		if _, err := s.EraseCustomer(t.Context(), key); !errors.Is(err, plans.ErrUnknownCustomer) {
			t.Errorf("%q: %v", key, err)
		}
	}
	for _, key := range []string{erased.Key, "erased:", "erased:999"} {
		if _, _, err := s.PutCustomer(t.Context(), key, planstest.OnPlan("basic"), plans.Precondition{}); !slices.Equal(planstest.Fields(err), []string{"key"}) {
			t.Errorf("%q can be written: %v", key, err)
		}
	}
	if err := s.ArchiveCustomer(t.Context(), erased.Key); err != nil {
		t.Errorf("archived again: %v", err)
	}
}
