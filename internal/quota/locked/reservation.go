package locked

import (
	"encoding/base64"
	"encoding/binary"
	"strings"

	"quotad/internal/quota/model"
)

// ReservationID identifies a reservation.
type ReservationID struct {
	Customer int64
	Meter    int32
	key      [16]byte
}

// NewReservationID returns the id of a customer's reservation on a meter. key is the key of the reservation's
// receipt.
func NewReservationID(customer int64, meter int32, key [16]byte) ReservationID {
	return ReservationID{customer, meter, key}
}

// Key returns the key of the reservation's receipt and holds.
func (r ReservationID) Key() [16]byte { return r.key }

// reservationPrefix is the beginning of the text of a ReservationID.
const reservationPrefix = "rsv_"

func (r ReservationID) String() string {
	b := binary.BigEndian.AppendUint64(nil, uint64(r.Customer))
	b = binary.BigEndian.AppendUint32(b, uint32(r.Meter))
	return reservationPrefix + base64.RawURLEncoding.EncodeToString(append(b, r.key[:]...))
}

// ParseReservationID parses the text of a ReservationID. ok is false for any other text.
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

// Reservation is the result of Reserve. If Allowed is false, nothing was reserved.
type Reservation struct {
	model.Decision
	ID        ReservationID
	ExpiresAt int64 // µs since the Unix epoch, by the customer's clock
}

// Settled is the result of Commit and Release.
type Settled struct {
	model.Decision       // the state afterwards: At and the view of each limit
	Reserved       int64 // the units that had been reserved
	Late           bool  // the reservation had expired; in that case a commit charges the whole cost now
}
