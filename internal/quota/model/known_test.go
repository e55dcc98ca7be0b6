package model

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// What a target learns is what another knew, to the last field; under another change number
// it learns nothing.
func TestKnownRowComesBack(t *testing.T) {
	limits := []*Limit{
		limitOf(t, "w", "fixed_window", "1h", 1000),
		limitOf(t, "m", "fixed_window", "billing_period", 1000),
		limitOf(t, "b", "token_bucket", "1h", 1000),
		limitOf(t, "s", "sliding_window", "1h", 1000),
		mustCompile(t, Spec{Name: "f", Algorithm: "fixed_window", Limit: 9, Window: "45s", Align: "first_hit"}),
		mustCompile(t, Spec{Name: "a", Algorithm: "allocation", Limit: 9}),
	}
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.Int64Range(0, softCap)
		instant := rapid.Int64Range(testEpoch, testEpoch+1e15)
		since := instant.Draw(t, "since")
		target := fireTarget(1, limits[:rapid.IntRange(0, len(limits)).Draw(t, "limits")])
		target.Change = rapid.Int64Min(1).Draw(t, "change")
		r := &Known{Counted: true}
		r.At, r.Version, r.Change = instant.Draw(t, "at"), rapid.Int64Min(1).Draw(t, "version"), target.Change
		r.Hour, _ = target.RunningHour(r.At)
		for _, l := range target.Counters[0].Limits {
			b := bucket{number.Draw(t, "level"), number.Draw(t, "aux")}
			if l.refills {
				b.aux = ratedBy(b.aux % MaxNumber)
			}
			r.State = l.append(r.State, b, target.moment(r.At))
		}
		target.known.set(r)
		b := target.AppendRow([]byte("x"), since)
		if len(b) == 1 || b[0] != 'x' {
			t.Fatalf("%q is appended", b)
		}
		like := fireTarget(1, target.Counters[0].Limits)
		like.Change = target.Change
		like.LearnRow(b[1:], since)
		var got Known
		if knows, _ := like.Recall(&got, 0); !knows || got.At != r.At || got.Version != r.Version || got.Change != r.Change || got.Hour != r.Hour ||
			!got.Counted || !slices.Equal(got.State, r.State) {
			t.Errorf("%+v is learned, not %+v", got, r)
		}
		other := fireTarget(1, target.Counters[0].Limits)
		other.Change = target.Change - 1
		other.LearnRow(b[1:], since)
		if knows, _ := other.Recall(&got, 0); knows {
			t.Error("learned under another change number")
		}
	})
}

// What does not fit in the few bytes is not told: the next hit reads it.
func TestWhatOfKnownRowsIsNotTold(t *testing.T) {
	window, log := limitOf(t, "w", "fixed_window", "1h", 1000), limitOf(t, "l", "sliding_log", "1h", 1000)
	state := []int64{window.ID, 1, 1, testEpoch + 3600e6}
	hour := testEpoch
	for name, test := range map[string]struct {
		limits []*Limit
		row    *Known
	}{
		"nothing":          {[]*Limit{window}, nil},
		"that it is large": {[]*Limit{window}, &Known{Large: true}},
		"units of no hour": {[]*Limit{window}, &Known{Row: Row{At: testEpoch, Change: 1, State: state}, Hour: hour}},
		"another hour":     {[]*Limit{window}, &Known{Row: Row{At: testEpoch, Change: 1, State: state}, Hour: hour - 1, Counted: true}},
		"another change":   {[]*Limit{window}, &Known{Row: Row{At: testEpoch, Change: 2, State: state}, Hour: hour, Counted: true}},
		"a bucket less":    {[]*Limit{window, window}, &Known{Row: Row{At: testEpoch, Change: 1, State: state}, Hour: hour, Counted: true}},
		"a bucket more":    {nil, &Known{Row: Row{At: testEpoch, Change: 1, State: state}, Hour: hour, Counted: true}},
		"another limit's bucket": {
			[]*Limit{limitOf(t, "x", "fixed_window", "2h", 1)},
			&Known{Row: Row{At: testEpoch, Change: 1, State: state}, Hour: hour, Counted: true},
		},
		"an empty log, which may grow": {[]*Limit{log}, &Known{Row: Row{At: testEpoch, Change: 1, State: []int64{log.ID, 0, 0, 0}}, Hour: hour, Counted: true}},
		"reservations that hold of it": {[]*Limit{window}, &Known{
			Row:  Row{At: testEpoch, Change: 1, State: append([]int64{heldMark, 5, 0, 0}, state...)},
			Hour: hour, Counted: true,
		}},
		"reservations, and limits more": {[]*Limit{window, window}, &Known{Row: Row{
			At: testEpoch, Change: 1,
			State: append([]int64{heldMark, 5, 0, 0}, state...),
		}, Hour: hour, Counted: true}},
	} {
		target := fireTarget(1, test.limits)
		if test.row != nil {
			target.known.set(test.row)
		}
		if b := target.AppendRow(nil, testEpoch); len(b) > 0 {
			t.Errorf("%s: %x is told", name, b)
		}
	}
}
