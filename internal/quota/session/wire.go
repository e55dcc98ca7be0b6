package session

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"
)

// This file reads and writes the binary formats of PostgreSQL's arrays without reflection or allocation, for the
// few types that the hot statements use.

// The type identifiers of pg_type, which are the same in all versions.
const (
	oidInt2 = 21
	oidInt4 = 23
	oidInt8 = 20
	oidText = 25
	oidByte = 17
	oidUUID = 2950
)

// Params collects a statement's parameters in one reused buffer.
type Params struct {
	buf  []byte
	ends []int
	vals [][]byte
}

// Reset removes all parameters.
func (p *Params) Reset() {
	if cap(p.buf) > MostKept {
		p.buf = nil
	}
	p.buf, p.ends = p.buf[:0], p.ends[:0]
}

// MostKept is the maximum size of a buffer that is reused, bytes. Without this maximum, one batch with long logs
// would occupy its megabytes forever.
const MostKept = 1 << 20

// header writes the header of a one-dimensional array without nulls and with lower bound 1.
func (p *Params) header(oid uint32, n int) {
	dims := uint32(1)
	if n == 0 {
		dims = 0
	}
	p.buf = binary.BigEndian.AppendUint32(p.buf, dims)
	p.buf = binary.BigEndian.AppendUint32(p.buf, 0)
	p.buf = binary.BigEndian.AppendUint32(p.buf, oid)
	if n > 0 {
		p.buf = binary.BigEndian.AppendUint32(p.buf, uint32(n))
		p.buf = binary.BigEndian.AppendUint32(p.buf, 1)
	}
}

// Int2 adds a smallint[].
func (p *Params) Int2(values []int16) {
	p.header(oidInt2, len(values))
	for _, v := range values {
		p.buf = binary.BigEndian.AppendUint32(p.buf, 2)
		p.buf = binary.BigEndian.AppendUint16(p.buf, uint16(v))
	}
	p.ends = append(p.ends, len(p.buf))
}

// Int4 adds an integer[].
func (p *Params) Int4(values []int32) {
	p.header(oidInt4, len(values))
	for _, v := range values {
		p.buf = binary.BigEndian.AppendUint32(p.buf, 4)
		p.buf = binary.BigEndian.AppendUint32(p.buf, uint32(v))
	}
	p.ends = append(p.ends, len(p.buf))
}

// Int8 adds a bigint[].
func (p *Params) Int8(values []int64) {
	p.header(oidInt8, len(values))
	for _, v := range values {
		p.buf = binary.BigEndian.AppendUint32(p.buf, 8)
		p.buf = binary.BigEndian.AppendUint64(p.buf, uint64(v))
	}
	p.ends = append(p.ends, len(p.buf))
}

// Text adds a text[].
func (p *Params) Text(values []string) {
	p.header(oidText, len(values))
	for _, v := range values {
		p.buf = binary.BigEndian.AppendUint32(p.buf, uint32(len(v)))
		p.buf = append(p.buf, v...)
	}
	p.ends = append(p.ends, len(p.buf))
}

// UUID adds a uuid[].
func (p *Params) UUID(values [][16]byte) {
	p.header(oidUUID, len(values))
	for i := range values {
		p.buf = binary.BigEndian.AppendUint32(p.buf, 16)
		p.buf = append(p.buf, values[i][:]...)
	}
	p.ends = append(p.ends, len(p.buf))
}

// Bytes adds a bytea[].
func (p *Params) Bytes(values [][]byte) {
	p.header(oidByte, len(values))
	for _, v := range values {
		p.buf = binary.BigEndian.AppendUint32(p.buf, uint32(len(v)))
		p.buf = append(p.buf, v...)
	}
	p.ends = append(p.ends, len(p.buf))
}

// Values returns the parameters in the form that the protocol requires. They are valid until the next Reset.
func (p *Params) Values() [][]byte {
	p.vals = p.vals[:0]
	start := 0
	for _, end := range p.ends {
		p.vals = append(p.vals, p.buf[start:end])
		start = end
	}
	return p.vals
}

// room is a message without bytes. Its Encode provides the connection with a buffer for the next messages. The
// connection discards its own buffer after more than a kilobyte was sent. The growth of a new buffer for each
// batch caused a fifth of all allocations of a hit.
type room struct {
	buf  []byte
	need int
}

// makeRoom provides a buffer. Call it before sending a statement with these parameters.
func (s *Conn) makeRoom(params [][]byte) {
	s.room.need = statementRoom
	for _, p := range params {
		s.room.need += len(p)
	}
	s.conn.PgConn().Frontend().Send(&s.room)
}

// statementRoom exceeds the size of a statement's messages without the parameters, bytes.
const statementRoom = 1024

// Encode implements pgproto3.Message. It copies the written bytes to the buffer, which the next messages continue.
func (r *room) Encode(written []byte) ([]byte, error) {
	total := len(written) + r.need
	if total > MostKept {
		return append(make([]byte, 0, total), written...), nil
	}
	if cap(r.buf) < total {
		r.buf = make([]byte, 0, min(2*total, MostKept))
	}
	return append(r.buf[:0], written...), nil
}

// Decode implements pgproto3.Message. No peer sends such a message.
func (*room) Decode([]byte) error { return errors.New("not a message of the protocol") }

// Frontend implements pgproto3.FrontendMessage.
func (*room) Frontend() {}

// ReadInt reads a bigint, integer or smallint column.
func ReadInt(col []byte) (int64, error) {
	switch len(col) {
	case 8:
		return int64(binary.BigEndian.Uint64(col)), nil
	case 4:
		return int64(int32(binary.BigEndian.Uint32(col))), nil
	case 2:
		return int64(int16(binary.BigEndian.Uint16(col))), nil
	}
	return 0, fmt.Errorf("an integer column of %d bytes", len(col))
}

// ReadKeys reads a uuid[] column without nulls.
func ReadKeys(col []byte) ([][16]byte, error) {
	const each = 4 + 16 // a length and the key
	if len(col) < 20 || binary.BigEndian.Uint32(col[4:]) != 0 || binary.BigEndian.Uint32(col[8:]) != oidUUID {
		return nil, errors.New("not a uuid array without nulls, of one key or more")
	}
	n := int(binary.BigEndian.Uint32(col[12:]))
	if len(col) != 20+each*n {
		return nil, fmt.Errorf("a uuid array of %d elements in %d bytes", n, len(col))
	}
	keys := make([][16]byte, n)
	for i := range keys {
		copy(keys[i][:], col[24+each*i:])
	}
	return keys, nil
}

// ReadAll reads integer columns into variables.
func ReadAll(cols [][]byte, into ...*int64) (err error) {
	for i, dst := range into {
		if *dst, err = ReadInt(cols[i]); err != nil {
			return err
		}
	}
	return nil
}

// ReadInts reads a bigint[] column without nulls.
func ReadInts(col []byte) ([]int64, error) { return AppendInts(nil, col) }

// ReadIntsOrNone is ReadInts for a column that may be null. It returns nil for null.
func ReadIntsOrNone(col []byte) ([]int64, error) {
	if col == nil {
		return nil, nil
	}
	return ReadInts(col)
}

// AppendInts is ReadInts, but appends to values.
func AppendInts(values []int64, col []byte) ([]int64, error) {
	if len(col) == 12 { // no dimension: empty
		return values, nil
	}
	if len(col) < 20 || binary.BigEndian.Uint32(col[4:]) != 0 || binary.BigEndian.Uint32(col[8:]) != oidInt8 {
		return nil, fmt.Errorf("not a bigint array without nulls")
	}
	n := int(binary.BigEndian.Uint32(col[12:]))
	if len(col) != 20+12*n {
		return nil, fmt.Errorf("a bigint array of %d elements in %d bytes", n, len(col))
	}
	values = slices.Grow(values, n)
	for i := range n {
		values = append(values, int64(binary.BigEndian.Uint64(col[24+12*i:])))
	}
	return values, nil
}

// NextInts reads the first of several consecutive nonempty bigint[] values, and returns the remaining bytes.
func NextInts(raw []byte) (values []int64, others []byte, err error) {
	const head = 20
	if len(raw) < head {
		return nil, nil, fmt.Errorf("a bigint array in %d bytes", len(raw))
	}
	size := min(uint64(len(raw)), head+12*uint64(binary.BigEndian.Uint32(raw[12:])))
	values, err = ReadInts(raw[:size])
	return values, raw[size:], err
}

// EachRow reads rows whose first column is the number of the requested key, counted from 1. read receives the
// number, counted from 0, and the other columns.
func EachRow(r *pgconn.ResultReader, most int, read func(n int, cols [][]byte) error) (bad error) {
	for r.NextRow() {
		cols := r.Values()
		n, err := ReadInt(cols[0])
		if err == nil && (n < 1 || int(n) > most) {
			err = fmt.Errorf("an answer about %d of %d", n, most)
		}
		if err == nil {
			err = read(int(n-1), cols[1:])
		}
		if err != nil {
			bad = err
		}
	}
	return bad
}
