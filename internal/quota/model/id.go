package model

import (
	"crypto/sha256"
	"encoding/binary"
)

// MaxID bounds the ids of operations, in bytes.
const MaxID = 255

// ID names an operation of a customer: done once, whoever sends it how often. The zero ID
// is none.
type ID struct {
	Key     [16]byte // of the kind of operation and the client's id
	Payload int64    // what was asked for under it
}

// NewID is the ID of an operation of some kind under the client's id. payload is all that
// was asked for: another one under the same id is ErrOtherPayload.
func NewID(kind, id string, payload ...string) ID {
	digest := digestOf(payload)
	return ID{idKey(kind, id), int64(binary.BigEndian.Uint64(digest[:]))}
}

// Given reports whether there is one.
func (id ID) Given() bool { return id.Key != [16]byte{} }

// idKey is what an operation's receipt is found by, beside its customer. 128 bits of
// SHA-256: two ids never share one, and it says nothing about the id.
func idKey(kind, id string) (key [16]byte) {
	digest := digestOf([]string{kind, id})
	copy(key[:], digest[:])
	return key
}

// digestOf hashes parts, each after its length.
func digestOf(parts []string) [sha256.Size]byte {
	var b []byte
	for _, p := range parts {
		b = binary.AppendUvarint(b, uint64(len(p)))
		b = append(b, p...)
	}
	return sha256.Sum256(b)
}

// Hit is one hit of many (see DecideAll).
type Hit struct {
	Target *Target
	Cost   int64 // 0 … MaxNumber; 0 looks only
	Look   bool  // judge and charge nothing
	ID     ID    // charged once, whoever sends it how often; zero: it has none
	// Overrun: the cost has been spent already. It is charged and booked whole, past hard limits
	// too.
	Overrun bool
}

// Looks reports whether the hit charges nothing.
func (h *Hit) Looks() bool { return h.Look || h.Cost == 0 }
