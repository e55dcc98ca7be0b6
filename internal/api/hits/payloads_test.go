package hits

import (
	"strings"
	"testing"

	"quotad/internal/api/request"
	"quotad/internal/api/respond"
	"quotad/internal/quota/locked"
	"quotad/internal/quota/model"
)

// Whatever changes what comes of a request is part of what its id stands for, and nothing
// else is.
func TestPayloadsOfIDs(t *testing.T) {
	t.Parallel()
	operation := func(body string) model.ID {
		t.Helper()
		h, err := decodeHit([]byte(`{"customer":"acme","meter":"requests","id":"x"`+body+`}`), new(respond.Subject))
		check(t, err)
		return h.operation()
	}
	plain := operation("")
	for body, same := range map[string]bool{
		`,"cost":1`: true, `,"attributes":{}`: true, `,"cost":2`: false,
		`,"attributes":{"a":"1"}`: false, `,"attributes":{"":"1"}`: false,
	} {
		if strings.Contains(body, `"":`) {
			continue // refused before
		}
		if got := operation(body); (got == plain) != same {
			t.Errorf("%s: the same payload %v, want %v", body, got == plain, same)
		}
	}
	if operation(`,"attributes":{"a":"1","b":"2"}`) != operation(`,"attributes":{"b":"2","a":"1"}`) {
		t.Error("the order of attributes is part of the payload")
	}
	if operation(`,"attributes":{"a":"1"}`) == operation(`,"attributes":{"a":"2"}`) ||
		operation(`,"attributes":{"a":"b"}`) == operation(`,"attributes":{"b":"a"}`) {
		t.Error("attributes are not part of the payload")
	}
	for _, look := range []string{`,"dry_run":true`, `,"cost":0`} {
		if operation(look) != (model.ID{}) {
			t.Errorf("a look has an id: %s", look)
		}
	}
	b, err := decodeBatch([]byte(`{"hits":[{"customer":"acme","meter":"requests"},{"customer":"acme","meter":"requests"},{"customer":"acme","meter":"requests","id":"x"},7]}`))
	check(t, err)
	own := func(h hit) model.ID {
		id := h.operation()
		id.Batch = nil
		return id
	}
	hits, results := b.decode("key")
	if own(hits[0]) == own(hits[1]) || own(hits[0]) == (model.ID{}) || own(hits[2]) != plain || results[3].Err == nil {
		t.Errorf("of a batch: %+v", hits)
	}
	again, _ := b.decode("key")
	other, _ := b.decode("other")
	if own(hits[1]) != own(again[1]) || own(hits[1]) == own(other[1]) {
		t.Error("the ids of a batch's hits are not those of its key")
	}
	if *hits[1].batch != *again[1].batch || *hits[1].batch != *hits[2].batch || hits[1].batch.Key == other[1].batch.Key ||
		hits[1].batch.Payload != other[1].batch.Payload {
		t.Error("a batch's id is not that of its key and its hits")
	}
	for _, body := range []string{
		`{"hits":[{"customer":"acme","meter":"requests"},{"customer":"acme","meter":"requests"},{"customer":"acme","meter":"requests","id":"x"},8]}`,
		`{"hits":[{"customer":"acme","meter":"requests"},{"customer":"acme","meter":"requests"},{"customer":"acme","meter":"requests","id":"x"}]}`,
		`{"hits":[{"customer":"acme","meter":"requests"},{"customer":"acme","meter":"requests"},{"customer":"acme","meter":"requests","id":"x"},7],"atomic":true}`,
		`{"hits":[{"customer":"acme","meter":"requests"},{"customer":"acme","meter":"requests","dry_run":true},{"customer":"acme","meter":"requests","id":"x"},7]}`,
	} {
		b, err := decodeBatch([]byte(body))
		check(t, err)
		if another, _ := b.decode("key"); another[0].batch.Key != hits[0].batch.Key || another[0].batch.Payload == hits[0].batch.Payload {
			t.Errorf("it is taken for the same batch: %s", body)
		}
	}
	none, _ := b.decode("")
	if none[0].operation() != (model.ID{}) {
		t.Error("a batch without a key gives ids")
	}
}

func TestPayloadsOfRefundsAndReservations(t *testing.T) {
	t.Parallel()
	refund := func(body string) locked.Refund {
		t.Helper()
		in := refundRequest{}
		check(t, request.Decode([]byte(`{"customer":"acme","meter":"requests",`+body+`}`), &in))
		check(t, in.identify(""))
		return in.operation(&model.Target{})
	}
	plain := refund(`"cost":2,"id":"x"`)
	if again := refund(`"id":"x","cost":2,"attributes":{}`); again.ID != plain.ID || again.Hit != (model.ID{}) || again.Cost != 2 {
		t.Errorf("%+v, not %+v", again, plain)
	}
	for _, other := range []string{`"cost":3,"id":"x"`, `"cost":2,"id":"y"`, `"cost":2,"id":"x","hit":"h"`, `"cost":2,"id":"x","attributes":{"a":"b"}`} {
		if refund(other).ID == plain.ID {
			t.Errorf("%s is the same refund", other)
		}
	}
	if got := refund(`"cost":2,"id":"x","hit":"h"`).Hit; got != model.NewID("hit", "h") {
		t.Errorf("the hit is %v", got)
	}
	reservation := func(body string) model.ID {
		t.Helper()
		in := reservationRequest{}
		check(t, request.Decode([]byte(`{"customer":"acme","meter":"requests",`+body+`}`), &in))
		asked, err := in.identify("")
		check(t, err)
		return asked.operation()
	}
	made := reservation(`"ttl_ms":1000,"id":"x"`)
	if reservation(`"ttl_ms":1000,"id":"x","cost":1`) != made {
		t.Error("another reservation")
	}
	for _, other := range []string{
		`"ttl_ms":1001,"id":"x"`, `"ttl_ms":1000,"id":"y"`, `"ttl_ms":1000,"id":"x","cost":2`,
		`"ttl_ms":1000,"id":"x","attributes":{"a":"b"}`,
	} {
		if reservation(other) == made {
			t.Errorf("%s is the same reservation", other)
		}
	}
	if a, b := reservation(`"ttl_ms":1000`), reservation(`"ttl_ms":1000`); a == b || a == (model.ID{}) {
		t.Error("without an id they are not reservations of their own")
	}
}
