package quota

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
		number := rapid.Int64()
		instant := rapid.Int64Range(testEpoch, testEpoch+1e15)
		since := instant.Draw(t, "since")
		target := fireTarget(1, limits[:rapid.IntRange(0, len(limits)).Draw(t, "limits")])
		target.Change = rapid.Int64Min(1).Draw(t, "change")
		r := &knownRow{counted: true}
		r.at, r.version, r.change = instant.Draw(t, "at"), rapid.Int64Min(1).Draw(t, "version"), target.Change
		r.hour, _ = target.runningHour(r.at)
		for _, l := range target.Counters[0].Limits {
			r.state = append(r.state, l.id(target.moment(r.at)), number.Draw(t, "level"), number.Draw(t, "aux"))
		}
		target.known.set(r)
		b := target.AppendRow([]byte("x"), since)
		if len(b) == 1 || b[0] != 'x' {
			t.Fatalf("%q is appended", b)
		}
		like := fireTarget(1, target.Counters[0].Limits)
		like.Change = target.Change
		like.LearnRow(b[1:], since)
		var got knownRow
		if knows, _ := like.Recall(&got, 0); !knows || got.at != r.at || got.version != r.version || got.change != r.change || got.hour != r.hour || !got.counted || !slices.Equal(got.state, r.state) {
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
	state := []int64{window.ID, 1, 1}
	hour := testEpoch
	for name, test := range map[string]struct {
		limits []*Limit
		row    *knownRow
	}{
		"nothing":                       {[]*Limit{window}, nil},
		"that it is large":              {[]*Limit{window}, &knownRow{large: true}},
		"units of no hour":              {[]*Limit{window}, &knownRow{row: row{at: testEpoch, change: 1, state: state}, hour: hour}},
		"another hour":                  {[]*Limit{window}, &knownRow{row: row{at: testEpoch, change: 1, state: state}, hour: hour - 1, counted: true}},
		"another change":                {[]*Limit{window}, &knownRow{row: row{at: testEpoch, change: 2, state: state}, hour: hour, counted: true}},
		"a bucket less":                 {[]*Limit{window, window}, &knownRow{row: row{at: testEpoch, change: 1, state: state}, hour: hour, counted: true}},
		"a bucket more":                 {nil, &knownRow{row: row{at: testEpoch, change: 1, state: state}, hour: hour, counted: true}},
		"another limit's bucket":        {[]*Limit{limitOf(t, "x", "fixed_window", "2h", 1)}, &knownRow{row: row{at: testEpoch, change: 1, state: state}, hour: hour, counted: true}},
		"an empty log, which may grow":  {[]*Limit{log}, &knownRow{row: row{at: testEpoch, change: 1, state: []int64{log.ID, 0, 0}}, hour: hour, counted: true}},
		"reservations that hold of it":  {[]*Limit{window}, &knownRow{row: row{at: testEpoch, change: 1, state: append([]int64{heldMark, 5, 0}, state...)}, hour: hour, counted: true}},
		"reservations, and limits more": {[]*Limit{window, window}, &knownRow{row: row{at: testEpoch, change: 1, state: append([]int64{heldMark, 5, 0}, state...)}, hour: hour, counted: true}},
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
