package session

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"quotad/internal/testkit"
)

// TestWireRoundTrip: PostgreSQL reads every array as it was meant, and ReadInts and
// ReadInt read back what it answers.
func TestWireRoundTrip(t *testing.T) {
	conn, ctx := testSession(t).Conn.conn, testkit.Context(t)
	const echo = "SELECT $1::smallint[]::text, $2::integer[]::text, $3::bigint[]::text, $4::text[], $3::bigint[], $5::bigint[], cardinality($5), cardinality($4)::bigint"
	description, err := conn.PgConn().Prepare(ctx, "echo", echo, nil)
	if err != nil {
		t.Fatal(err)
	}
	var p Params
	rapid.Check(t, func(rt *rapid.T) {
		two := rapid.SliceOf(rapid.Int16()).Draw(rt, "int2")
		four := rapid.SliceOf(rapid.Int32()).Draw(rt, "int4")
		eight := rapid.SliceOf(rapid.OneOf(rapid.Int64(), rapid.SampledFrom([]int64{0, -1, math.MaxInt64, math.MinInt64}))).Draw(rt, "int8")
		words := rapid.SliceOf(rapid.StringMatching(`[ -~äß€]{0,20}`)).Draw(rt, "text")
		p.Reset()
		p.Int2(two)
		p.Int4(four)
		p.Int8(eight)
		p.Text(words)
		p.Int8(nil)
		r := conn.PgConn().ExecStatement(ctx, description, p.Values(), binaryFormat, binaryFormat)
		if !r.NextRow() {
			_, err := r.Close()
			rt.Fatal(err)
		}
		row := slices.Clone(r.Values())
		for i := range row {
			row[i] = bytes.Clone(row[i])
		}
		if _, err := r.Close(); err != nil {
			rt.Fatal(err)
		}
		var twoText, fourText, eightText string
		var wordsBack []string
		want := conn.QueryRow(ctx, "SELECT $1::smallint[]::text, $2::integer[]::text, $3::bigint[]::text, $4::text[]",
			orEmpty(two), orEmpty(four), orEmpty(eight), orEmpty(words))
		if err := want.Scan(&twoText, &fourText, &eightText, &wordsBack); err != nil {
			rt.Fatal(err)
		}
		if string(row[0]) != twoText || string(row[1]) != fourText || string(row[2]) != eightText {
			rt.Fatalf("%s %s %s, want %s %s %s", row[0], row[1], row[2], twoText, fourText, eightText)
		}
		var back []string
		if err := conn.TypeMap().Scan(1009, 1, row[3], &back); err != nil || !slices.Equal(back, words) {
			rt.Fatalf("texts %q, %v, want %q", back, err, words)
		}
		if got, err := ReadInts(row[4]); err != nil || !slices.Equal(got, eight) {
			rt.Fatalf("%v, %v, want %v", got, err, eight)
		}
		if got, err := ReadInts(row[5]); err != nil || len(got) != 0 {
			rt.Fatalf("%v, %v, want none", got, err)
		}
		if got, err := ReadInt(row[6]); err != nil || got != 0 {
			rt.Fatalf("an integer: %d, %v", got, err)
		}
		if got, err := ReadInt(row[7]); err != nil || got != int64(len(words)) {
			rt.Fatalf("a bigint: %d, %v", got, err)
		}
	})
}

// orEmpty: pgx sends nil as NULL.
func orEmpty[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

func TestReadIntsRefuses(t *testing.T) {
	var p Params
	p.Int8([]int64{1, 2})
	good := p.Values()[0]
	change := func(at int, value uint32) []byte {
		b := bytes.Clone(good)
		binary.BigEndian.PutUint32(b[at:], value)
		return b
	}
	for name, col := range map[string][]byte{
		"nothing": {}, "short": good[:16], "cut": good[:len(good)-1], "more": append(bytes.Clone(good), 0),
		"nulls": change(4, 1), "integers": change(8, oidInt4), "more elements": change(12, 3), "huge": change(12, math.MaxUint32),
	} {
		if got, err := ReadInts(col); err == nil {
			t.Errorf("%s: %v", name, got)
		}
	}
	if got, err := ReadInt([]byte{1, 2, 3}); err == nil {
		t.Errorf("three bytes are %d", got)
	}
}

func FuzzReadInts(f *testing.F) {
	var p Params
	p.Int8([]int64{1, -2, math.MaxInt64})
	p.Int8(nil)
	p.Int4([]int32{7})
	for _, col := range p.Values() {
		f.Add(col)
	}
	f.Fuzz(func(t *testing.T, col []byte) {
		values, err := ReadInts(col)
		if err != nil {
			return
		}
		var p Params
		p.Int8(values)
		if again, err := ReadInts(p.Values()[0]); err != nil || !slices.Equal(again, values) {
			t.Fatalf("%v, then %v, %v", values, again, err)
		}
	})
}
