package api

import (
	"strconv"
	"strings"
	"testing"

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
		`{"customer":"acme","met`:   "not JSON: it ends too early, behind byte 23",
		`{"customer":{"a":[`:        "not JSON: it ends too early, behind byte 18",
		`{"customer":`:              "not JSON: it ends too early, behind byte 12",
		`{"customer":"acme",`:       "not JSON: it ends too early, behind byte 19",
		`{"customer":tru`:           "not JSON: it ends too early, behind byte 15",
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
