package quota

import (
	"encoding/binary"
	"fmt"
)

// place is where a row's newest version was in its table when it was last written or read, its
// ctid: the block's number times 2¹⁶, and the number in it, from 1 on. 0: nobody knows. Like all that is known of a row it may
// be old, and then another row may be there.
//
// To find a row at its place takes no look-up in the index, and PostgreSQL does not prune its
// page on the way, which it does else with nearly each charge, as pages are nearly full. But
// pruned a page must be, now and then, before there is no room for new versions.
type place int64

// mostUnpruned is how many old versions of rows may be in a page when one is written at its place.
// A page that is full has room for five new ones.
const mostUnpruned = 3

// mostPlaced is the longest state of a row that is reached at its place: a page has no room for
// five longer ones.
const mostPlaced = 4 * bucketLen

// beaten counts, by pages, the versions that a lane has left behind since it reached a row there
// by its key. Pages that are 2¹⁵ apart are counted as one.
type beaten struct {
	batch uint16 // a number of the batch
	pages [1 << 15]struct {
		batch  uint16
		behind uint8
	}
}

// next begins a batch.
func (b *beaten) next() { b.batch++ }

// placed reports whether a row is to be written at its place. Of a page's rows in a batch only the
// first may be not: what the batch itself leaves behind cannot be pruned before its end.
func (b *beaten) placed(r *knownRow) bool {
	if r.place == 0 || len(r.state) > mostPlaced {
		return false
	}
	page := &b.pages[r.place>>16%place(len(b.pages))]
	first := page.batch != b.batch
	page.batch = b.batch
	if first && page.behind >= mostUnpruned {
		page.behind = 1
		return false
	}
	page.behind = min(page.behind+1, mostUnpruned)
	return true
}

// read reads a column of the type tid.
func (p *place) read(col []byte) error {
	if len(col) != 6 {
		return fmt.Errorf("a tid column of %d bytes", len(col))
	}
	*p = place(binary.BigEndian.Uint32(col))<<16 | place(binary.BigEndian.Uint16(col[4:]))
	return nil
}

// oidTid is that of pg_type.
const oidTid = 27

// places appends those of swaps as an array.
func (p *params) places(swaps []swap) {
	p.header(oidTid, len(swaps))
	for i := range swaps {
		at := swaps[i].known.place
		p.buf = binary.BigEndian.AppendUint32(p.buf, 6)
		p.buf = binary.BigEndian.AppendUint32(p.buf, uint32(at>>16))
		p.buf = binary.BigEndian.AppendUint16(p.buf, uint16(at))
	}
	p.ends = append(p.ends, len(p.buf))
}
