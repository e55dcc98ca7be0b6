package catalog

import (
	"encoding/binary"
	"iter"

	"quotad/internal/plans/packed"
	"quotad/internal/quota/model"
)

// appendRows appends what the targets of a customer know of their counters' rows, as far as
// there is room. Each row is the meter's id, a length of one byte, and the bytes of
// model.Target.AppendRow. Meters that nobody asked for since the customer was unpacked keep
// the row that they had then.
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
			continue // a newer one has taken its place
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

// beginRow appends what comes before a meter's row, and returns where the row begins.
func beginRow(b []byte, meter int32) (_ []byte, from int) {
	b = append(binary.AppendUvarint(b, uint64(meter)), 0)
	return b, len(b)
}

// endRow sets the length of a row. It removes the row, back to before, when it is empty or too
// long.
func endRow(b []byte, before, from int) []byte {
	if len(b) == from || len(b) > packed.MaxValue {
		return b[:before]
	}
	b[from-1] = byte(len(b) - from)
	return b
}

// learnRow tells a meter's target what was known of its counter's row when the customer was
// packed.
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
