package packed

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func onePage() *pages {
	p := &pages{}
	p.init(1)
	return p
}

// Nothing is lost when pages become more, and there are never more than there may be.
func TestPackedGrow(t *testing.T) {
	// Some 22 bytes each: a third of it, and so many to a page that none is ever twice as full
	// as the others.
	const bytes, customers = 8 << 20, 120_000
	times := 10 // as many again do not fit
	if testing.Short() {
		times = 4
	}
	p := New(bytes)
	room := func() (n int) {
		for i := range p.shares {
			n += len(p.shares[i].bytes)
		}
		return n
	}
	value := func(i int) string { return fmt.Sprintf("%06d", i) }
	set := func(from, to int) {
		for i := from; i < to; i++ {
			p.Set(fmt.Sprint("customer-", i), []byte(value(i)))
		}
	}
	if first := room(); first > bytes/2 {
		t.Errorf("%d bytes at first", first)
	}
	set(0, customers)
	p.Remove("customer-7")
	for i := range customers {
		want := value(i)
		if i == 7 {
			want = ""
		}
		if got := string(p.Get(nil, fmt.Sprint("customer-", i))); got != want {
			t.Fatalf("%d is %q", i, got)
		}
	}
	set(customers, times*customers)
	if most := room(); most > bytes || most < bytes*7/8 {
		t.Errorf("%d bytes at most, of %d", most, bytes)
	}
	for i := range p.shares {
		if taken := used(&p.shares[i]); taken != p.shares[i].taken {
			t.Fatalf("%d bytes are taken, not %d", taken, p.shares[i].taken)
		}
	}
}

// used is how many bytes of pages are used.
func used(p *pages) (n int) {
	for from := 0; from < len(p.bytes); from += pageSize {
		n += max(pageHead, int(binary.LittleEndian.Uint16(p.bytes[from:])))
	}
	return n
}

// A page that is full loses what was packed first, and never what was packed last; what is
// found is what was packed last under its key.
func TestPagesOfPackedCustomers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := onePage()
		var order []string
		values := map[string]string{}
		bytes := func(keys []string) (n int) {
			for _, key := range keys {
				n += itemHead + len(key) + len(values[key])
			}
			return n
		}
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			key := rapid.StringMatching(`[a-f]{1,2}x{0,198}`).Draw(t, "key")
			if rapid.IntRange(0, 9).Draw(t, "remove") == 0 {
				p.remove(0, key)
				order = slices.DeleteFunc(order, func(k string) bool { return k == key })
				delete(values, key)
			}
			value := rapid.StringMatching(`[0-9]{1,90}`).Draw(t, "value")
			p.set(0, key, []byte(value), nil)
			order = append(slices.DeleteFunc(order, func(k string) bool { return k == key }), key)
			values[key] = value
			for bytes(order) > pageSize-pageHead {
				delete(values, order[0])
				order = order[1:]
			}
			for _, key := range append(order, "a", "b", "no") {
				if got := string(p.get(nil, 0, key)); got != values[key] {
					t.Fatalf("%s is %q, not %q", key, got, values[key])
				}
			}
		}
	})
}
