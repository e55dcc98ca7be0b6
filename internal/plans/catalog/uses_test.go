package catalog

import (
	"testing"
	"time"

	"quotad/internal/plans"
	"quotad/internal/testkit/pgtest"
	"quotad/internal/testkit/planstest"
)

// A key shows the day of its last use. The day is written once, in the background.
func TestKeysShowTheirLastUse(t *testing.T) {
	t.Parallel()
	_, c := newNode(t, pgtest.NewDatabase(t))
	ctx := t.Context()
	k, secret, err := storeOf(c).CreateKey(ctx, "k", plans.ScopeRead, nil)
	if err != nil {
		t.Fatal(err)
	}
	other, _, err := storeOf(c).CreateKey(ctx, "other", plans.ScopeRead, nil)
	if err != nil {
		t.Fatal(err)
	}
	used := func() map[string]*time.Time {
		t.Helper()
		on := map[string]*time.Time{}
		for _, k := range planstest.Must[*plans.List[plans.Key]](t)(storeOf(c).ListKeys(ctx, plans.Page{})).Items {
			on[k.ID] = k.UsedOn
		}
		return on
	}
	use := func() {
		t.Helper()
		if _, err := c.Authenticate(ctx, secret, func() error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	write := func() {
		t.Helper()
		if err := c.writeUses(ctx, storeOf(c)); err != nil {
			t.Fatal(err)
		}
	}
	write()
	for range 3 {
		use()
	}
	if on := used(); on[k.ID] != nil {
		t.Errorf("written on the way: %v", on[k.ID])
	}
	write()
	today := planstest.DatabaseNow(t, storeOf(c)).UTC().Truncate(24 * time.Hour)
	if on := used(); on[k.ID] == nil || today.Sub(*on[k.ID]) > 24*time.Hour || on[other.ID] != nil {
		t.Errorf("%v, today is %v", on, today)
	}
	// Once it is stored, the node does not write it again that day; another node may.
	if _, err := c.pool.Exec(ctx, "UPDATE key_uses SET used_on = '2020-01-01'"); err != nil {
		t.Fatal(err)
	}
	use()
	write()
	if on := used(); on[k.ID].Year() != 2020 {
		t.Errorf("written twice: %v", on[k.ID])
	}
	c.uses.day-- // the next day
	use()
	write()
	if on := used(); on[k.ID].Year() == 2020 {
		t.Error("the next day is not written")
	}
	if err := storeOf(c).KeysUsed(ctx, []string{k.ID, "key_gone"}, time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)); err != nil || used()[k.ID].Year() == 2020 {
		t.Errorf("it goes back: %v", err)
	}
}
