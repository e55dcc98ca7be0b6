package respond

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dunglas/httpsfv"
	"pgregory.net/rapid"

	"quotad/client"
	"quotad/internal/quota/model"
)

// anyLimit is any limit that a plan may have.
func anyLimit(t *rapid.T, name string) *model.Limit {
	for {
		spec := model.Spec{Name: name, Limit: rapid.OneOf(rapid.Int64Range(0, 100), rapid.Int64Range(0, model.MaxNumber)).Draw(t, "limit")}
		spec.Window = fmt.Sprintf("%d%s", rapid.Int64Range(1, 3600).Draw(t, "n"), rapid.SampledFrom([]string{"us", "ms", "s", "m", "h", "d"}).Draw(t, "unit"))
		spec.Algorithm = rapid.SampledFrom([]string{"fixed_window", "sliding_window", "token_bucket", "allocation"}).Draw(t, "algorithm")
		switch kind := rapid.SampledFrom([]string{"clock", "first_hit", "calendar_week", "billing_period"}).Draw(t, "kind"); {
		case spec.Algorithm == "allocation":
			spec.Window = ""
		case spec.Algorithm == "fixed_window" && kind == "first_hit":
			spec.Align = kind
		case spec.Algorithm == "fixed_window" && kind != "clock":
			spec.Window = kind
		}
		if spec.Algorithm == "token_bucket" && rapid.Bool().Draw(t, "with burst") && spec.Limit > 0 {
			burst := rapid.OneOf(rapid.Int64Range(0, 100), rapid.Int64Range(0, model.MaxNumber)).Draw(t, "burst")
			spec.Burst = &burst
		}
		if l, bad := model.Compile(spec); bad == nil {
			return l
		}
	}
}

// anyName is any name that a limit may have. Of another one anyLimit would make none, without an end.
var anyName = rapid.StringMatching(`[A-Za-z0-9._:-]{1,200}`).Filter(func(s string) bool { return s != "." && s != ".." })

func anyViews(t *rapid.T, at int64) []model.View {
	names := rapid.SliceOfNDistinct(anyName, 1, 5, rapid.ID).Draw(t, "names")
	views := make([]model.View, len(names))
	for i, name := range names {
		views[i] = model.View{
			Limit: anyLimit(t, name), Used: rapid.Int64Range(0, model.MaxNumber).Draw(t, "used"),
			Remaining: rapid.Int64Range(0, model.MaxNumber).Draw(t, "remaining"),
			ResetAt:   rapid.OneOf(rapid.Int64Range(at, at+1e13), rapid.Int64Range(at, 9e18), rapid.Just(model.NoReset)).Draw(t, "reset"),
		}
		if rapid.Bool().Draw(t, "refuses") {
			views[i].RetryAfter = rapid.OneOf(rapid.Just(model.Never), rapid.Int64Range(1, 1e15)).Draw(t, "retry")
		}
	}
	return views
}

// What the headers say, read by another implementation of structured fields, is what the
// views say.
func TestHeadersParseBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := rapid.Int64Range(0, 4e15).Draw(t, "at")
		views := anyViews(t, at)
		wait := rapid.OneOf(rapid.Just(model.Never), rapid.Int64Range(0, 1e15)).Draw(t, "wait")
		h := http.Header{}
		(&Buffer{Views: views}).QuotaHeaders(h, ResetSeconds, at, wait)
		policies, err := httpsfv.UnmarshalList(raw(h, "RateLimit-Policy"))
		if err != nil {
			t.Fatalf("%q: %v", raw(h, "RateLimit-Policy"), err)
		}
		states, err := httpsfv.UnmarshalList(raw(h, "RateLimit"))
		if err != nil {
			t.Fatalf("%q: %v", raw(h, "RateLimit"), err)
		}
		if len(policies) != len(views) || len(states) != len(views) {
			t.Fatalf("%d policies and %d states for %d limits", len(policies), len(states), len(views))
		}
		for i, v := range views {
			checkPolicy(t, policies[i].(httpsfv.Item), v.Limit)
			checkState(t, states[i].(httpsfv.Item), v, at)
		}
		told := toldBySorting(views, wait != 0)
		if raw(h, "X-RateLimit-Remaining")[0] != strconv.FormatInt(told.Remaining, 10) ||
			raw(h, "X-RateLimit-Limit")[0] != strconv.FormatInt(told.Limit.Capacity(), 10) {
			t.Fatalf("X-RateLimit of another limit than %s: %v", told.Limit.Name, h)
		}
		if reset := raw(h, "X-RateLimit-Reset"); (reset == nil) != (told.ResetAt == model.NoReset) || reset != nil &&
			reset[0] != strconv.FormatInt(ceilDiv(told.ResetAt-at, 1e6), 10) {
			t.Fatalf("X-RateLimit-Reset %v of %+v", reset, told)
		}
		checkRetryAfter(t, h["Retry-After"], wait)
	})
}

// toldBySorting is the view that X-RateLimit-* are of, by the contract's sentence: the refusing hard
// limits first, the longest wait before shorter ones; then the least remaining; then the latest reset.
func toldBySorting(views []model.View, refused bool) model.View {
	sorted := slices.Clone(views)
	refuses := func(v model.View) bool { return refused && v.Limit.Mode == model.Hard && v.RetryAfter != 0 }
	if slices.ContainsFunc(sorted, refuses) {
		sorted = slices.DeleteFunc(sorted, func(v model.View) bool { return !refuses(v) })
	}
	slices.SortStableFunc(sorted, func(a, b model.View) int {
		if refuses(a) {
			return cmp.Or(cmp.Compare(waitRank(b), waitRank(a)), cmp.Compare(b.ResetAt, a.ResetAt))
		}
		return cmp.Or(cmp.Compare(a.Remaining, b.Remaining), cmp.Compare(b.ResetAt, a.ResetAt))
	})
	return sorted[0]
}

// waitRank orders waits, never being the longest.
func waitRank(v model.View) uint64 {
	if v.RetryAfter == model.Never {
		return math.MaxUint64
	}
	return uint64(v.RetryAfter)
}

// Of two limits that are both full, the headers are of the one that Retry-After is of; and a soft limit
// hides none that refuses.
func TestXRateLimitIsOfTheLimitThatRefuses(t *testing.T) {
	limit := func(name, window, mode string) *model.Limit {
		l, bad := model.Compile(model.Spec{Name: name, Algorithm: "fixed_window", Limit: 5, Window: window, Mode: mode})
		if bad != nil {
			t.Fatal(bad)
		}
		return l
	}
	minute, hour, soft := limit("minute", "1m", "hard"), limit("hour", "1h", "hard"), limit("soft", "1d", "soft")
	for _, c := range []struct {
		views []model.View
		wait  int64
		reset string
	}{
		{[]model.View{{Limit: minute, RetryAfter: 50e6, ResetAt: 50e6}, {Limit: hour, RetryAfter: 3590e6, ResetAt: 3590e6}}, 3590e6, "3590"},
		{[]model.View{
			{Limit: soft, Remaining: 0, Exceeded: true, RetryAfter: 9000e6, ResetAt: 9000e6},
			{Limit: hour, Remaining: 2, RetryAfter: 3590e6, ResetAt: 3590e6},
		}, 3590e6, "3590"},
		{[]model.View{{Limit: minute, RetryAfter: model.Never, ResetAt: 50e6}, {Limit: hour, RetryAfter: 3590e6, ResetAt: 3590e6}}, model.Never, "50"},
		{[]model.View{{Limit: minute, Remaining: 3, ResetAt: 50e6}, {Limit: hour, Remaining: 3, ResetAt: 3590e6}}, 0, "3590"},
		{[]model.View{{Limit: minute, Remaining: 3, ResetAt: model.NoReset}, {Limit: hour, Remaining: 3, ResetAt: 3590e6}}, 0, ""},
	} {
		h := http.Header{}
		(&Buffer{Views: c.views}).QuotaHeaders(h, ResetSeconds, 0, c.wait)
		if got := strings.Join(raw(h, "X-RateLimit-Reset"), ""); got != c.reset {
			t.Errorf("%+v: X-RateLimit-Reset is %q, not %q", c.views, got, c.reset)
		}
	}
}

// raw is a header as it is written: in the RFCs' spelling, which is not Go's.
func raw(h http.Header, name string) []string { return h[name] }

func checkPolicy(t *rapid.T, item httpsfv.Item, l *model.Limit) {
	q, _ := item.Params.Get("q")
	w, hasW := item.Params.Get("w")
	if item.Value != l.Name || q != l.Capacity() {
		t.Fatalf("policy %v of %s", item, l.Name)
	}
	want, wanted := new(big.Int), false
	switch {
	case l.WindowText == "", l.Calendar:
	case l.Algorithm != model.TokenBucket && l.Window%1e6 == 0:
		want, wanted = big.NewInt(l.Window/1e6), true
	case l.Algorithm == model.TokenBucket && l.Limit > 0:
		want.Mul(big.NewInt(l.Burst), big.NewInt(l.Window))
		divisor := new(big.Int).Mul(big.NewInt(l.Limit), big.NewInt(1e6))
		want.Add(want, divisor).Sub(want, big.NewInt(1)).Quo(want, divisor)
		full := new(big.Int).Mul(big.NewInt(l.Burst), big.NewInt(l.Window))
		wanted = full.Quo(full, big.NewInt(l.Limit)).IsInt64()
	}
	if wanted != hasW || wanted && w != want.Int64() {
		t.Fatalf("%s: w is %v (%v), want %v (%v)", l.Name, w, hasW, want, wanted)
	}
}

func checkState(t *rapid.T, item httpsfv.Item, v model.View, at int64) {
	r, _ := item.Params.Get("r")
	left, there := item.Params.Get("t")
	if item.Value != v.Limit.Name || r != v.Remaining {
		t.Fatalf("state %v of %+v", item, v)
	}
	if v.ResetAt == model.NoReset {
		if there {
			t.Fatalf("t is %v for a reset that never comes", left)
		}
		return
	}
	if s := left.(int64); s*1e6 < v.ResetAt-at || (s-1)*1e6 >= v.ResetAt-at {
		t.Fatalf("t is %d s for a reset in %d µs", s, v.ResetAt-at)
	}
}

func checkRetryAfter(t *rapid.T, values []string, wait int64) {
	if wait <= 0 {
		if values != nil {
			t.Fatalf("Retry-After %v for a wait of %d", values, wait)
		}
		return
	}
	s, err := strconv.ParseInt(values[0], 10, 64)
	if err != nil || s*1e6 < wait || (s-1)*1e6 >= wait {
		t.Fatalf("Retry-After %v for a wait of %d µs", values, wait)
	}
}

func TestResetStyles(t *testing.T) {
	const at, reset = 1_700_000_000_500_000, 1_700_000_010_000_001
	for style, want := range map[ResetStyle]int64{ResetSeconds: 10, ResetEpoch: 1_700_000_011, ResetMillis: 9501} {
		if got := resetValue(reset, at, style); got != want {
			t.Errorf("style %d: %d, want %d", style, got, want)
		}
	}
}

// The most limits of the longest names leave room in the 8 KiB that clients take.
func TestHeadersAreBounded(t *testing.T) {
	for _, c := range []struct{ limits, name, listed int }{{20, 200, 15}, {20, 1, 20}, {100, 30, 20}, {1, 200, 1}} {
		var views []model.View
		for i := range c.limits {
			l, bad := model.Compile(model.Spec{Name: fmt.Sprintf("%0*d", c.name, i), Algorithm: "fixed_window", Limit: model.MaxNumber, Window: "1s"})
			if bad != nil && c.name >= 2 {
				t.Fatal(bad)
			} else if bad == nil {
				views = append(views, model.View{Limit: l, Remaining: model.MaxNumber - int64(i), ResetAt: 9e18})
			}
		}
		h := http.Header{}
		(&Buffer{Views: views}).QuotaHeaders(h, ResetSeconds, 0, model.Never)
		size := 0
		for name, values := range h {
			size += len(name) + len(values[0])
		}
		policies, err := httpsfv.UnmarshalList(raw(h, "RateLimit-Policy"))
		if err != nil {
			t.Fatal(err)
		}
		states, err := httpsfv.UnmarshalList(raw(h, "RateLimit"))
		if err != nil {
			t.Fatal(err)
		}
		if size > 8000 || len(policies) != c.listed || len(states) != c.listed {
			t.Errorf("%d limits of %d bytes: %d bytes for %d and %d of them", c.limits, c.name, size, len(policies), len(states))
		}
		if least := raw(h, "X-RateLimit-Remaining")[0]; least != strconv.FormatInt(model.MaxNumber-int64(len(views)-1), 10) {
			t.Errorf("%d limits: the least remaining is %s", c.limits, least)
		}
	}
}

// A buffer that served other limits says nothing of those, and changes no answer before.
func TestHeadersOfOtherLimits(t *testing.T) {
	limit := func(name string, most int64, mode string) *model.Limit {
		l, bad := model.Compile(model.Spec{Name: name, Algorithm: "fixed_window", Limit: most, Window: "1h", Mode: mode})
		if bad != nil {
			t.Fatal(bad)
		}
		return l
	}
	a, b, shadow := limit("a", 10, "hard"), limit("b", 20, "soft"), limit("c", 30, "shadow")
	used := new(Buffer)
	var before, want []http.Header
	for _, limits := range [][]*model.Limit{{a}, {a}, {b}, {a, b}, {b, a}, {a, shadow}, {shadow, b}, {a, b}, {a}} {
		views := make([]model.View, 0, len(limits))
		for i, l := range limits {
			views = append(views, model.View{Limit: l, Remaining: int64(5 - i + len(want)), ResetAt: 9e6})
		}
		h, fresh := http.Header{}, http.Header{}
		used.Views = append(used.Views[:0], views...)
		used.QuotaHeaders(h, ResetSeconds, 0, 0)
		(&Buffer{Views: views}).QuotaHeaders(fresh, ResetSeconds, 0, 0)
		before, want = append(before, h), append(want, fresh)
	}
	for i := range want {
		if !reflect.DeepEqual(before[i], want[i]) {
			t.Errorf("answer %d: %v, want %v", i, before[i], want[i])
		}
	}
}

func TestNoLimitsNoHeaders(t *testing.T) {
	h := http.Header{}
	new(Buffer).QuotaHeaders(h, ResetSeconds, 1, 0)
	if len(h) != 0 {
		t.Errorf("headers without limits: %v", h)
	}
}

// What is built by hand reads back, by encoding/json, as what was meant.
func TestDecisionsParseBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := Subject{Customer: rapid.StringMatching(`[ -.0-~]{1,40}`).Draw(t, "customer"), Meter: "m.x:y", Cost: rapid.Int64Range(0, model.MaxNumber).Draw(t, "cost")}
		d := model.Decision{Allowed: rapid.Bool().Draw(t, "allowed"), At: rapid.Int64Range(0, 4e15).Draw(t, "at")}
		d.Target = &model.Target{Clock: rapid.SampledFrom([]*model.TestClock{nil, {Key: "c:1"}}).Draw(t, "clock")}
		d.AsOf = rapid.SampledFrom([]int64{0, d.At + 1}).Draw(t, "as of")
		views := anyViews(t, d.At)
		wait := rapid.OneOf(rapid.Just(model.Never), rapid.Int64Range(0, 1e15)).Draw(t, "wait")
		raw := AppendDecision(nil, &h, &d, views, wait, 429)
		var got client.Refusal
		if err := json.Unmarshal(raw, &got); err != nil {
			t.Fatalf("%s: %v", raw, err)
		}
		if got.Allowed != d.Allowed || got.Customer != h.Customer || got.Cost != h.Cost || got.At.UnixMicro() != d.At ||
			(got.AsOf == nil) != (d.AsOf == 0) || (got.TestClock == "c:1") != (d.Target.Clock != nil) {
			t.Fatalf("%+v reads as %s", h, raw)
		}
		checkWait(t, got.RetryAfterMS, wait)
		violated := 0
		for i, v := range views {
			l := got.Limits[i]
			if l.Name != v.Limit.Name || l.Limit != v.Limit.Limit || l.Used != v.Used || l.Remaining != v.Remaining || l.Algorithm != v.Limit.Algorithm.String() {
				t.Fatalf("%+v reads as %+v", v, l)
			}
			if (l.Window == nil) != (v.Limit.WindowText == "") || l.Window != nil && *l.Window != v.Limit.WindowText {
				t.Fatalf("window %q reads as %v", v.Limit.WindowText, l.Window)
			}
			if (l.ResetAt == nil) != (v.ResetAt == model.NoReset) {
				t.Fatalf("reset %d reads as %v", v.ResetAt, l.ResetAt)
			}
			if l.ResetAt == nil {
				checkWait(t, l.RetryAfterMS, v.RetryAfter)
			} else if most := time.Date(9999, 12, 31, 23, 59, 59, 999999000, time.UTC); l.ResetAt.UnixMicro() != min(v.ResetAt, most.UnixMicro()) {
				t.Fatalf("reset %d reads as %s", v.ResetAt, l.ResetAt)
			}
			checkWait(t, l.RetryAfterMS, v.RetryAfter)
			if v.RetryAfter != 0 {
				violated++
			}
		}
		if !d.Allowed && (got.Type != QuotaExceeded || got.Status != 429 || len(got.ViolatedPolicies) != violated || got.Detail == "") {
			t.Fatalf("refusal: %s", raw)
		}
	})
}

func checkWait(t *rapid.T, ms *int64, wait int64) {
	if wait == model.Never {
		if ms != nil {
			t.Fatalf("never reads as %d", *ms)
		}
		return
	}
	if ms == nil || *ms*1000 < wait || *ms > 0 && (*ms-1)*1000 >= wait {
		t.Fatalf("%d µs read as %v ms", wait, ms)
	}
}

// Any string, invalid UTF-8 and control characters too, becomes a JSON string.
func FuzzAppendString(f *testing.F) {
	for _, s := range []string{"", "acme", "a\"b\\c", "\x00\x1f\x7f", "é\u2028", "\xff\xfe"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var got, want string
		raw, err := json.Marshal(s) // replaces invalid UTF-8 by its own rule
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(raw, &want); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(AppendString(nil, s), &got); err != nil || got != want {
			t.Fatalf("%q becomes %s and reads as %q: %v", s, AppendString(nil, s), got, err)
		}
	})
}
