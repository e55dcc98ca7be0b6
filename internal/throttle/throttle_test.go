package throttle

import (
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// fakeWall is a node's clock that goes where it is set.
type fakeWall struct{ past atomic.Int64 }

func (f *fakeWall) now() time.Time       { return time.Unix(1_700_000_000, f.past.Load()) }
func (f *fakeWall) pass(d time.Duration) { f.past.Add(int64(d)) }

// An address may take as often a minute as it may, and as often at once. What is given back may be
// taken again, and each address is for itself.
func TestTake(t *testing.T) {
	var clock fakeWall
	limited := New(6, clock.now)
	a, b := Address("192.0.2.1:1"), Address("192.0.2.2:1")
	take := func(from netip.Prefix, times int, wait time.Duration) {
		t.Helper()
		for range times {
			if wait := limited.Take(from); wait != 0 {
				t.Fatalf("it is told to wait %v", wait)
			}
		}
		if got := limited.Take(from); got != wait {
			t.Fatalf("it is told to wait %v, not %v", got, wait)
		}
	}
	take(a, 6, 10*time.Second)
	take(b, 6, 10*time.Second)
	limited.GiveBack(a)
	take(a, 1, 10*time.Second)
	clock.pass(9 * time.Second)
	take(a, 0, time.Second)
	clock.pass(time.Second)
	take(a, 1, 10*time.Second)
	clock.pass(time.Hour)
	limited.GiveBack(a) // its bucket is full, and stays so
	take(a, 6, 10*time.Second)
}

// However many addresses come, no more than MaxAddresses are remembered.
func TestAddressesAreBounded(t *testing.T) {
	limited := New(6, new(fakeWall).now)
	for i := range 3 * MaxAddresses {
		if wait := limited.Take(Address(fmt.Sprintf("[2001:db8:%x:%x::1]:1", i/1000, i%1000))); wait != 0 {
			t.Fatalf("address %d is told to wait %v", i, wait)
		}
	}
	if n := limited.rows.Len(); n > MaxAddresses || n < MaxAddresses/2 {
		t.Errorf("%d addresses are remembered", n)
	}
}

// Of many at once as many are admitted as may be.
func TestTakeAtOnce(t *testing.T) {
	limited := New(60, new(fakeWall).now)
	var admitted atomic.Int64
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 50 {
				if limited.Take(Address("192.0.2.1:1")) == 0 {
					admitted.Add(1)
				}
			}
		})
	}
	all.Wait()
	if n := admitted.Load(); n != 60 {
		t.Errorf("%d are admitted, not 60", n)
	}
}

func TestAddress(t *testing.T) {
	for given, want := range map[string]string{
		"192.0.2.1:80":              "192.0.2.1/32",
		"[::ffff:192.0.2.1]:80":     "192.0.2.1/32",
		"[2001:db8:1:2:3:4:5:6]:80": "2001:db8:1:2::/64",
		"[fe80::1%eth0]:80":         "fe80::/64",
		"@":                         "invalid Prefix",
		"":                          "invalid Prefix",
	} {
		if got := Address(given).String(); got != want {
			t.Errorf("%q counts for %s, not %s", given, got, want)
		}
	}
}
