package locked

import (
	"encoding/base64"
	"encoding/binary"
	"strings"

	"quotad/internal/quota/model"
)

// ReservationID names a reservation.
type ReservationID struct {
	Customer int64
	Meter    int32
	key      [16]byte
}

// NewReservationID is the id of the reservation of a customer on a meter whose receipt has a key.
func NewReservationID(customer int64, meter int32, key [16]byte) ReservationID {
	return ReservationID{customer, meter, key}
}

// Key is that of the reservation's receipt, and of its holds.
func (r ReservationID) Key() [16]byte { return r.key }

// reservationPrefix begins the text of a ReservationID.
const reservationPrefix = "rsv_"

func (r ReservationID) String() string {
	b := binary.BigEndian.AppendUint64(nil, uint64(r.Customer))
	b = binary.BigEndian.AppendUint32(b, uint32(r.Meter))
	return reservationPrefix + base64.RawURLEncoding.EncodeToString(append(b, r.key[:]...))
}

// ParseReservationID reads the text of one; ok is false for any other.
func ParseReservationID(s string) (r ReservationID, ok bool) {
	text, ok := strings.CutPrefix(s, reservationPrefix)
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if !ok || err != nil || len(b) != 8+4+len(r.key) {
		return r, false
	}
	r.Customer, r.Meter = int64(binary.BigEndian.Uint64(b)), int32(binary.BigEndian.Uint32(b[8:]))
	copy(r.key[:], b[12:])
	return r, true
}

// Reservation is the outcome of Reserve. Unless Allowed nothing was reserved.
type Reservation struct {
	model.Decision
	ID        ReservationID
	ExpiresAt int64 // µs since the Unix epoch, by the customer's clock
}

// Settled is the outcome of Commit and Release.
type Settled struct {
	model.Decision       // as of afterwards: At, and what each limit says
	Reserved       int64 // units that had been reserved
	Late           bool  // the reservation had expired; a commit then charges all of the cost now
}
