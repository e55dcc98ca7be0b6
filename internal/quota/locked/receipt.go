package locked

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"strings"

	"quotad/internal/quota/model"
	"quotad/internal/quota/session"
)

// receipt is the record of an operation that was done under an id.
type receipt struct {
	receiptKey
	payload  int64
	at       int64 // the instant of the charge, by the customer's clock, µs
	cost     int64 // the charged units
	returned int64 // the part of these units that was refunded
	meter    int32
	state    int16
	receiptBody

	bad     error // the reason why the body cannot be read: it has a newer version, or is damaged
	slot    int16 // the table that contains the receipt
	fresh   bool  // the receipt is not in a table yet
	changed bool  // the receipt must be written again
}

type receiptKey struct {
	customer int64
	key      [16]byte
}

// The states of a receipt. The last three are states of a reservation.
const (
	receiptDone      = 0
	receiptOpen      = 1
	receiptCommitted = 2
	receiptReleased  = 3
)

// receiptBody is the part of a receipt that is stored as bytes.
type receiptBody struct {
	hour     int64           // the start of the hour in which the units were booked, µs
	expires  int64           // the expiry of a reservation, µs
	reserved int64           // the reserved units of a reservation
	late     bool            // a reservation was committed after it had expired
	charged  []model.Charged // the charged limits, one element for each counter; nil: nothing was charged
	views    []model.View    // the response's view of each limit
	settled  []model.View    // the view of each limit in the response that settled a reservation
	doneAt   int64           // At of the response that settled a reservation
}

// attributes returns the attributes and values of the charged counters.
func (b *receiptBody) attributes() map[string]string {
	attributes := make(map[string]string)
	for _, c := range b.charged {
		if name, value, ok := strings.Cut(c.Attribute, "="); ok {
			attributes[name] = value
		}
	}
	return attributes
}

// AttributesOf returns the attributes and values of the counters that a stored receipt was charged to, or nil if
// this version cannot read the receipt.
func AttributesOf(body []byte) map[string]string {
	b, err := decodeBody(body)
	if err != nil {
		return nil
	}
	return b.attributes()
}

// replay returns the stored decision of a receipt.
func (r *receipt) replay(t *model.Target) model.Decision {
	return model.Replayed(t, r.at, r.cost, r.views)
}

// bodyVersion is the first byte of a body. A change of the format requires another version, and earlier versions
// stay readable for as long as ids are kept.
const bodyVersion = 1

// encode appends the body. Integers are varints, and strings and lists follow their length.
func (b *receiptBody) encode(dst []byte) []byte {
	dst = append(dst, bodyVersion)
	late := int64(0)
	if b.late {
		late = 1
	}
	for _, v := range []int64{b.hour, b.expires, b.reserved, late, b.doneAt, int64(len(b.charged))} {
		dst = binary.AppendVarint(dst, v)
	}
	for _, c := range b.charged {
		dst = appendText(dst, c.Attribute)
		dst = binary.AppendVarint(dst, int64(len(c.Limits)))
		for _, id := range c.Limits {
			dst = binary.AppendVarint(dst, id)
		}
	}
	return appendViews(appendViews(dst, b.views), b.settled)
}

func appendText(dst []byte, s string) []byte {
	return append(binary.AppendVarint(dst, int64(len(s))), s...)
}

// appendViews appends the views of a response, with all data that is needed to replay the response under another
// plan.
func appendViews(dst []byte, views []model.View) []byte {
	dst = binary.AppendVarint(dst, int64(len(views)))
	for _, v := range views {
		l := v.Limit
		dst = appendText(appendText(dst, l.Name), l.WindowText)
		flags := int64(l.Mode)
		if l.Calendar {
			flags |= 1 << 8
		}
		if v.Exceeded {
			flags |= 1 << 9
		}
		for _, n := range []int64{int64(l.Algorithm), flags, l.Limit, l.Burst, l.Window, v.Used, v.Remaining, v.RetryAfter, v.ResetAt, v.Reserved} {
			dst = binary.AppendVarint(dst, n)
		}
	}
	return dst
}

var errBadBody = errors.New("a receipt's body cannot be read")

// decodeBody reads the output of encode.
func decodeBody(b []byte) (body receiptBody, err error) {
	if len(b) == 0 || b[0] != bodyVersion {
		return body, errBadBody
	}
	r := bodyReader{rest: b[1:]}
	body.hour, body.expires, body.reserved = r.int(), r.int(), r.int()
	body.late, body.doneAt = r.int() != 0, r.int()
	for range r.len() {
		c := model.Charged{Attribute: r.text()}
		for range r.len() {
			c.Limits = append(c.Limits, r.int())
		}
		body.charged = append(body.charged, c)
	}
	body.views, body.settled = r.views(), r.views()
	if r.bad || len(r.rest) > 0 {
		return body, errBadBody
	}
	return body, nil
}

// bodyReader reads a body. bad reports that the body is malformed.
type bodyReader struct {
	rest []byte
	bad  bool
}

func (r *bodyReader) int() int64 {
	v, n := binary.Varint(r.rest)
	if n <= 0 {
		r.bad, r.rest = true, nil
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

// len returns a length, which cannot exceed the number of remaining bytes.
func (r *bodyReader) len() int {
	n := r.int()
	if n < 0 || n > int64(len(r.rest)) {
		r.bad, r.rest = true, nil
		return 0
	}
	return int(n)
}

func (r *bodyReader) text() string {
	n := r.len()
	s := string(r.rest[:n])
	r.rest = r.rest[n:]
	return s
}

func (r *bodyReader) views() (views []model.View) {
	for range r.len() {
		l := &model.Limit{Name: r.text(), WindowText: r.text()}
		l.Algorithm = model.Algorithm(r.int())
		flags := r.int()
		l.Mode, l.Calendar = model.Mode(flags&0xff), flags&(1<<8) != 0
		l.Limit, l.Burst, l.Window = r.int(), r.int(), r.int()
		v := model.View{Limit: l, Exceeded: flags&(1<<9) != 0}
		v.Used, v.Remaining, v.RetryAfter, v.ResetAt, v.Reserved = r.int(), r.int(), r.int(), r.int(), r.int()
		views = append(views, v)
	}
	return views
}

func compareIDs(a, b receiptKey) int {
	return cmp.Or(cmp.Compare(model.Shard(a.customer), model.Shard(b.customer)), cmp.Compare(a.customer, b.customer), bytes.Compare(a.key[:], b.key[:]))
}

// idColumns contains receipts' keys in the form that the statements require.
type idColumns []receiptKey

func (c idColumns) encode(p *session.Params) {
	shard, customer, key := make([]int16, len(c)), make([]int64, len(c)), make([][16]byte, len(c))
	for i, id := range c {
		shard[i], customer[i], key[i] = model.Shard(id.customer), id.customer, id.key
	}
	p.Int2(shard)
	p.Int8(customer)
	p.UUID(key)
}
