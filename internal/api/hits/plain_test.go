package hits

import (
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"quotad/internal/api/respond"
)

// Those that the short way is for, and what it must leave to the long one.
var plainHits = []struct {
	body  string
	taken bool
}{
	{`{"customer":"acme","meter":"requests"}`, true},
	{" {\t\"customer\" : \"auth0|x y\" ,\r\n\"cost\" : 999999999999999 , \"meter\" : \"a.b_c:d-e\" } ", true},
	{`{"customer":"a","meter":"b","cost":0,"id":"x","dry_run":true,"attributes":{"ip":"192.0.2.1","path":"/"}}`, true},
	{`{"customer":"a","meter":"b","dry_run":false,"attributes":{"ip":""}}`, true},
	{`{"customer":"a","meter":"b","overrun":true,"dry_run":false}`, true},
	{`{"customer":"a","meter":"b","overrun":true,"dry_run":true}`, false},
	{``, false},
	{`{}`, false},
	{`null`, false},
	{`[]`, false},
	{`{"customer":"a"}`, false},
	{`{"customer":"a","meter":"b"`, false},
	{`{"customer":"a","meter":"b",}`, false},
	{`{"customer":"a","meter":"b"}}`, false},
	{`{"customer":"a","meter":"b"} x`, false},
	{`{"customer":"a","meter":"b","meter":"b"}`, false},
	{`{"customer":"a","Meter":"b"}`, false},
	{`{"customer":"a","meter":"b","x":1}`, false},
	{`{"customer":"a","meter":}`, false},
	{`{"customer":a","meter":"b"}`, false},
	{`{"customer""a","meter":"b"}`, false},
	{`{"customer":"\u0061","meter":"b"}`, false},
	{`{"customer":"é","meter":"b"}`, false},
	{`{"customer":"a/b","meter":"b"}`, false},
	{`{"customer":"a","meter":"b c"}`, false},
	{`{"customer":"a","meter":null}`, false},
	{`{"customer":"a","meter":"b","cost":-0}`, false},
	{`{"customer":"a","meter":"b","cost":01}`, false},
	{`{"customer":"a","meter":"b","cost":1.0}`, false},
	{`{"customer":"a","meter":"b","cost":1e3}`, false},
	{`{"customer":"a","meter":"b","cost":"1"}`, false},
	{`{"customer":"a","meter":"b","cost":1000000000000000}`, false},
	{`{"customer":"a","meter":"b","cost":99999999999999999999}`, false},
	{`{"customer":"a","meter":"b","cost":}`, false},
	{`{"customer":"a","meter":"b","id":""}`, false},
	{`{"customer":"a","meter":"b","id":null}`, false},
	{`{"customer":"a","meter":"b","dry_run":truex}`, false},
	{`{"customer":"a","meter":"b","dry_run":tru}`, false},
	{`{"customer":"a","meter":"b","attributes":"x":"y"}`, false},
	{`{"customer":"a","meter":"b","attributes":{}`, false},
	{`{"customer":"a","meter":"b","attributes":}}`, false},
	{`{"customer":"a","meter":"b","attributes":{"a":"1","a":"1"}}`, false},
	{`{"customer":"a","meter":"b","attributes":{"a":1}}`, false},
	{`{"customer":"a","meter":"b","attributes":{"a b":"1"}}`, false},
	{`{"customer":"a","meter":"b","attributes":{"a":"` + strings.Repeat("x", 201) + `"}}`, false},
}

func TestPlainHits(t *testing.T) {
	t.Parallel()
	for _, c := range plainHits {
		if _, ok := plainHit([]byte(c.body), new(respond.Subject)); ok != c.taken {
			t.Errorf("%s: taken %v", c.body, ok)
		}
		sameAsAnyHit(t.Fatalf, []byte(c.body))
	}
}

// sameAsAnyHit wants that what the short way takes the long one takes alike.
func sameAsAnyHit(fail func(string, ...any), body []byte) {
	for _, like := range []respond.Subject{{}, {Customer: "a", Meter: "b"}} {
		got, ok := plainHit(body, &like)
		if !ok {
			continue
		}
		want, err := decodeAnyHit(body)
		if err != nil || !reflect.DeepEqual(got, want) {
			fail("%q is taken as %+v, and is %+v, %v", body, got, want, err)
		}
	}
}

// A batch of plain hits is what the long way makes of it.
func TestPlainBatches(t *testing.T) {
	t.Parallel()
	const good = `{"customer":"a","meter":"b"}`
	for body, taken := range map[string]bool{
		`{"hits":[` + good + `]}`: true, " { \"atomic\" : true , \"hits\" : [ " + good + " , " + good + " ] } ": true,
		`{"hits":[` + good + `,{"customer":"c","meter":"d","cost":7,"id":"x"}],"atomic":false}`: true,
		`{"hits":[` + strings.Repeat(good+",", MaxHits-1) + good + `]}`:                         true,
		`{"hits":[` + strings.Repeat(good+",", MaxHits) + good + `]}`:                           false,
		`{"hits":[]}`: false, `{"atomic":true}`: false, `{}`: false, `[` + good + `]`: false, `{"hits":` + good + `}`: false,
		`{"hits":[` + good + `],"hits":[` + good + `]}`: false, `{"hits":[` + good + `],"atomic":true,"atomic":true}`: false,
		`{"hits":[` + good + `],}`: false, `{"hits":[` + good + `,]}`: false, `{"hits":[` + good + good + `]}`: false,
		`{"hits":[` + good + `]`: false, `{"hits":[` + good + `]}}`: false, `{"hits":` + good + `]}`: false,
		`{"hits":[` + good + `],"atomic":1}`: false, `{"hits":[` + good + `],"more":1}`: false, `{"hits":[` + good + `,{}]}`: false,
	} {
		if _, ok := plainBatch([]byte(body)); ok != taken {
			t.Errorf("%.99s: taken %v", body, ok)
		}
		sameAsAnyBatch(t.Fatalf, []byte(body))
	}
}

// sameAsAnyBatch wants that what the short way takes the long one takes alike.
func sameAsAnyBatch(fail func(string, ...any), body []byte) {
	short, ok := plainBatch(body)
	if !ok {
		return
	}
	long, err := decodeBatch(body)
	if err != nil || long.atomic != short.atomic {
		fail("%q is taken as %+v, and is %+v, %v", body, short, long, err)
		return
	}
	got, _ := short.decode("key")
	want, results := long.decode("key")
	for i := range results {
		if results[i].Err != nil {
			fail("%q is taken, but %v", body, results[i].Err)
		}
	}
	if !reflect.DeepEqual(got, want) {
		fail("%q is taken as %+v, and is %+v", body, got, want)
	}
}

func FuzzPlainBatch(f *testing.F) {
	for _, c := range plainHits {
		f.Add([]byte(`{"hits":[` + c.body + `],"atomic":true}`))
		f.Add([]byte(`{"hits":[{"customer":"a","meter":"b"},` + c.body + `]}`))
	}
	f.Fuzz(func(t *testing.T, body []byte) { sameAsAnyBatch(t.Fatalf, body) })
}

func FuzzPlainHit(f *testing.F) {
	for _, c := range plainHits {
		f.Add([]byte(c.body))
	}
	f.Fuzz(func(t *testing.T, body []byte) { sameAsAnyHit(t.Fatalf, body) })
}

// Hits that are nearly right: one of the good ones with a byte put in, taken out or changed.
func TestNearlyPlainHits(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		body := []byte(rapid.SampledFrom(plainHits).Draw(t, "hit").body + " ")
		for range rapid.IntRange(0, 3).Draw(t, "edits") {
			i := rapid.IntRange(0, len(body)-1).Draw(t, "at")
			c := rapid.SampledFrom([]byte("{}[]\",:\\ 01-.et\n\x00\x7f\xff")).Draw(t, "byte")
			switch rapid.IntRange(0, 2).Draw(t, "edit") {
			case 0:
				body = append(body[:i], append([]byte{c}, body[i:]...)...)
			case 1:
				body[i] = c
			case 2:
				body = append(body[:i], body[i+1:]...)
			}
			if len(body) == 0 {
				return
			}
		}
		sameAsAnyHit(t.Fatalf, body)
	})
}
