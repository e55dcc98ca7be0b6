package testkit

import "testing"

func TestSeedOf(t *testing.T) {
	t.Parallel()
	one, err := seedOf("", "TestA")
	again, _ := seedOf("", "TestA")
	other, _ := seedOf("", "TestB")
	if err != nil || one != again || one == other {
		t.Errorf("two runs draw %d and %d, another test %d: %v", one, again, other, err)
	}
	new1, err1 := seedOf("new", "TestA")
	new2, err2 := seedOf("new", "TestA")
	if err1 != nil || err2 != nil || new1 == new2 {
		t.Errorf("two new ones are %d and %d: %v, %v", new1, new2, err1, err2)
	}
	if given, err := seedOf("18446744073709551615", "TestA"); err != nil || given != 1<<64-1 {
		t.Errorf("the greatest is read as %d: %v", given, err)
	}
	for _, bad := range []string{"-1", "x", "18446744073709551616"} {
		if _, err := seedOf(bad, "TestA"); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

func TestEachSeed(t *testing.T) {
	seen := map[uint64]bool{}
	t.Run("fixed", func(t *testing.T) {
		t.Setenv("QUOTAD_SEED", "")
		EachSeed(t, []uint64{7, 8}, func(_ *testing.T, seed uint64) { seen[seed] = true })
	})
	if len(seen) != 3 || !seen[7] || !seen[8] {
		t.Errorf("seeds that failed once, and the fixed one: %v", seen)
	}
	clear(seen)
	t.Run("given", func(t *testing.T) {
		t.Setenv("QUOTAD_SEED", "5")
		EachSeed(t, []uint64{7, 8}, func(_ *testing.T, seed uint64) { seen[seed] = true })
	})
	if len(seen) != 1 || !seen[5] {
		t.Errorf("QUOTAD_SEED=5: %v", seen)
	}
}
