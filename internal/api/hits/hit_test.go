package hits

import (
	"errors"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"quotad/internal/api/problem"
	"quotad/internal/api/respond"
)

// What is said of the whole body begins with no field, and a body that was cut off ended
// where it ended.
func TestDecodeWordsWholeBodies(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`[]`:                        "the body must be a JSON object",
		``:                          "the body is empty: send a JSON object",
		`{"customer":"acme","met`:   "not JSON: it ends too early, after byte 23",
		`{"customer":{"a":[`:        "not JSON: it ends too early, after byte 18",
		`{"customer":`:              "not JSON: it ends too early, after byte 12",
		`{"customer":"acme",`:       "not JSON: it ends too early, after byte 19",
		`{"customer":tru`:           "not JSON: it ends too early, after byte 15",
		`{"customer":"acme"} {}`:    "there is more after the JSON value, at byte 20",
		`{"customer":"acme",,`:      "not JSON at byte 19: ",
		`{"customer":"acme" "a":1}`: "not JSON at byte 19: ",
	} {
		_, err := decodeHit([]byte(body), new(respond.Subject))
		if got := problem.Of(err).Detail; !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", body, got, want)
		}
	}
}

// A sentence in a header is a valid value of HTTP/1.1 and HTTP/2, whatever is stored.
func TestGatewayDetailIsAHeader(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]string{
		"unpaid": "unpaid", "Zahlung überfällig – 5 €": "Zahlung überfällig – 5 €", "a\r\nX-Evil: 1": "a  X-Evil: 1",
		"\x00a\x7fb\u0085c\t": "a b c", "a\xffb": "a\ufffdb",
	} {
		w := httptest.NewRecorder()
		tellGateway(w, "suspended", said)
		if got := w.Header().Get(detailHeader); got != want {
			t.Errorf("%q becomes %q, want %q", said, got, want)
		}
	}
}

// Whatever comes, it is a hit, a 400 or a 422: never a 500 and never a panic.
func FuzzDecodeHit(f *testing.F) {
	for _, s := range []string{`{"customer":"a","meter":"b"}`, `{"cost":1e99}`, `[`, "\xff", `{"a":{"a":{}}}`, `{"attributes":{"a":"b"}}`, `{"cost":-0}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		h, err := decodeHit(body, new(respond.Subject))
		if err == nil && (h.Cost < 0 || h.Customer == "" || h.Meter == "") {
			t.Fatalf("%q is taken as %+v", body, h)
		}
		if err != nil {
			if k := problem.Of(err).Kind; k != problem.KindNotJSON && k != problem.KindInvalid {
				t.Fatalf("%q: %s", body, k.Name)
			}
		}
	})
}

// A hit is decoded as encoding/json would, for all hits that are right.
func TestDecodeHitKeepsIntegers(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		cost := rapid.Int64Range(0, 1e15-1).Draw(t, "cost")
		space := rapid.SampledFrom([]string{"", " ", "\n\t"}).Draw(t, "space")
		body := space + `{"cost":` + space + strconv.FormatInt(cost, 10) + `,"meter":"m","customer":"c|d"}` + space
		h, err := decodeHit([]byte(body), new(respond.Subject))
		if err != nil || h.Cost != cost || h.Customer != "c|d" {
			t.Fatalf("%s: %+v %v", body, h, err)
		}
	})
}

const oneHitBody = `{"customer":"acme","meter":"requests","cost":1}`

// The parts of a hit, for the shares: as nearly all clients write it, and in any JSON.
func BenchmarkDecodeHit(b *testing.B) {
	body := []byte(oneHitBody)
	like := &respond.Subject{Customer: "acme", Meter: "requests"}
	for name, decode := range map[string]func() (hit, error){
		"plain": func() (hit, error) { return decodeHit(body, like) },
		"any":   func() (hit, error) { return decodeAnyHit(body) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := decode(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// Whatever comes, it is a batch, a 400 or a 422, and its hits are all there.
func FuzzDecodeBatch(f *testing.F) {
	for _, s := range []string{`{"hits":[{},1]}`, `{"hits":[],"atomic":true}`, `{"hits":[[`, "\xff", `{"hits":[{"a":1,"a":1}]} `, `{"hits":[]}{`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		b, err := decodeBatch(body)
		if err != nil {
			if k := problem.Of(err).Kind; k != problem.KindNotJSON && k != problem.KindInvalid {
				t.Fatalf("%q: %s", body, k.Name)
			}
			return
		}
		var want struct {
			Hits   []any `json:"hits"`
			Atomic any   `json:"atomic"`
		}
		if err := json.Unmarshal(body, &want, jsontext.AllowDuplicateNames(true)); err != nil || len(want.Hits) != len(b.hits) || (want.Atomic == true) != b.atomic {
			t.Fatalf("%q: %d hits, not %d, atomic %v: %v", body, len(b.hits), len(want.Hits), b.atomic, err)
		}
	})
}

// Hits beyond those that a batch may have are not even read.
func TestLongBatchIsCheap(t *testing.T) {
	body := []byte(`{"hits":[` + strings.Repeat("1,", 500_000) + `1]}`)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := decodeBatch(body)
	runtime.ReadMemStats(&after)
	if !errors.Is(err, errManyHits) {
		t.Errorf("%v", err)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 1<<20 {
		t.Errorf("it took %d bytes", took)
	}
	b, err := decodeBatch([]byte(`{"hits":[` + strings.Repeat(" {\"a\":\t[1]} ,", 999) + `7]}`))
	if err != nil || len(b.hits) != MaxHits || string(b.hits[998]) != "{\"a\":\t[1]}" || string(b.hits[999]) != "7" {
		t.Errorf("%d hits, %v", len(b.hits), err)
	}
}
