package catalog

import (
	"encoding/binary"
	"iter"

	"quotad/internal/plans/packed"
	"quotad/internal/quota/model"
)

// appendRows appends the information that a customer's targets have about their counters' rows, if there
// is room. Each row consists of the meter's id, a length of one byte, and the bytes of
// model.Target.AppendRow. A meter that was not used since the customer was unpacked keeps its previous
// row.
func (e *customerEntry) appendRows(b []byte, since int64) []byte {
	var targets *meterTarget
	if t := e.terms.Load(); t != nil {
		targets = t.targets.Load()
	}
	asked := func(meter int32) bool {
		for mt := targets; mt != nil; mt = mt.older {
			if mt.meter.id == meter {
				return true
			}
		}
		return false
	}
	for mt := targets; mt != nil; mt = mt.older {
		if targets.of(mt.meter) != mt {
			continue // a newer target has replaced this target
		}
		before, from := len(b), 0
		b, from = beginRow(b, mt.meter.id)
		b = endRow(mt.target.AppendRow(b, since), before, from)
	}
	for meter, row := range packedRows(e.rows) {
		if !asked(meter) {
			before, from := len(b), 0
			b, from = beginRow(b, meter)
			b = endRow(append(b, row...), before, from)
		}
	}
	return b
}

// beginRow appends the header of a meter's row and returns the position at which the row begins.
func beginRow(b []byte, meter int32) (_ []byte, from int) {
	b = append(binary.AppendUvarint(b, uint64(meter)), 0)
	return b, len(b)
}

// endRow sets the length of a row. If the row is empty or too long, endRow removes the row and its
// header, back to before.
func endRow(b []byte, before, from int) []byte {
	if len(b) == from || len(b) > packed.MaxValue {
		return b[:before]
	}
	b[from-1] = byte(len(b) - from)
	return b
}

// learnRow passes to a meter's target the information about its counter's row from the time when the
// customer was packed.
func (e *customerEntry) learnRow(meter int32, target *model.Target) {
	for of, row := range packedRows(e.rows) {
		if of == meter {
			target.LearnRow(row, e.since)
		}
	}
}

// packedRows yields the rows that appendRows appended, with their meters.
func packedRows(b []byte) iter.Seq2[int32, []byte] {
	return func(yield func(int32, []byte) bool) {
		for len(b) > 0 {
			meter, size := binary.Uvarint(b)
			from := size + 1
			end := from + int(b[size])
			if !yield(int32(meter), b[from:end]) {
				return
			}
			b = b[end:]
		}
	}
}
