package quota

import (
	"encoding/binary"
	"fmt"
	"strings"
	"sync"
)

// place is where a row's newest version was in its table when it was last written or read, its
// ctid: the block's number times 2¹⁶, and the line's in it, from 1 on. 0: nobody knows. Like all
// that is known of a row it may be old, and then another row may be there.
//
// To find a row at its place takes no look-up in the index, and PostgreSQL does not prune its
// page on the way, which it does else with nearly each charge, as pages are nearly full. But
// pruned a page must be, now and then, before there is no room for new versions.
type place int64

// placedSQL is swapSQL for rows at their places, $2; where a shard is given, the place is looked
// up by the key. Whose row is at a place is asked in a way that no index could answer, or a scan
// of the index could come first. Places are of one table: where counters are distributed by their
// shard, swapSQL itself is the statement.
var placedSQL = strings.Replace(swapSQL,
	"c.shard = ANY (ARRAY[i.shard]) AND c.customer = i.customer AND c.meter = i.meter AND c.attribute = i.attribute",
	`c.ctid = CASE WHEN i.shard < 0 THEN ($2::tid[])[(g.n + 11) / 13] ELSE (
	SELECT k.ctid FROM counters k
	WHERE k.shard = ANY (ARRAY[i.shard]) AND k.customer = i.customer AND k.meter = i.meter AND k.attribute = i.attribute) END
  AND c.customer + 0 = i.customer AND c.meter + 0 = i.meter AND octet_length(c.attribute) = 0`, 1)

// mostBehind is how many old versions of rows may be left behind in a page without pruning it. A
// page that is full has room for five new versions of two buckets, or three of mostPlaced.
const mostBehind = 3

// mostPlaced is the longest state of a row that is reached at its place.
const mostPlaced = 4 * bucketLen

// pageRoom says, by pages, how many rows an engine's lanes may still write at their places before
// one is reached by its key: none in a page of which nothing is known. Other engines prune by
// themselves: rows that others write as well they must mostly read before, by their keys.
type pageRoom struct {
	mu    sync.Mutex
	batch uint16 // a number of the batch
	pages [1 << 16]struct {
		of         uint16 // the higher half of the page's number
		batch      uint16
		rows, left uint8 // of the batch, and how many more may be written
	}
}

// choose says which rows of a batch are written at their places. Of a page's rows only the first
// may be not: what the batch itself leaves behind cannot be pruned before its end.
func (r *pageRoom) choose(swaps []swap) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.batch++
	for i := range swaps {
		s := &swaps[i]
		if s.placed = s.known.place != 0 && len(s.known.state) <= mostPlaced; !s.placed {
			continue
		}
		of, page := s.known.place.half(), &r.pages[s.known.place.page()]
		if page.of != of {
			page.of, page.left = of, 0
		}
		if page.batch != r.batch {
			page.batch, page.rows = r.batch, 0
		}
		page.rows = min(page.rows+1, mostBehind+1)
	}
	for i := range swaps {
		s := &swaps[i]
		if !s.placed {
			continue
		}
		page := &r.pages[s.known.place.page()]
		switch {
		case page.of != s.known.place.half():
			s.placed = false
		case page.rows > page.left:
			s.placed, page.left = false, mostBehind
			fallthrough
		default:
			page.left -= min(page.rows, page.left)
			page.rows = 0
		}
	}
}

// page and half are the lower and the higher half of the page's number.
func (p place) page() uint16 { return uint16(p >> 16) }
func (p place) half() uint16 { return uint16(p >> 32) }

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
