package faults

import (
	"math"
	"testing"

	"github.com/anishathalye/porcupine"
)

// timed is an operation of a history by hand.
type timed struct {
	call, end int64
	in        step
	out       outcome
}

const ever = math.MaxInt64

// TestModelKnowsRightFromWrong: histories by hand, right ones and such as a lost or doubled
// unit would leave.
func TestModelKnowsRightFromWrong(t *testing.T) {
	hit := func(cost int64) step { return step{kind: stepHit, cost: cost} }
	look := func(used, flying int64) outcome {
		return outcome{done: true, viewed: true, used: used, flying: flying}
	}
	looks := step{kind: stepLook}
	yes, no, lost := outcome{done: true}, outcome{}, outcome{unknown: true}
	reserve, commit := step{kind: stepReserve, cost: 6, ttl: longTTL}, func(cost int64) step { return step{kind: stepCommit, cost: cost} }
	brief := step{kind: stepReserve, cost: 6, ttl: shortTTL}
	tardy := func(cost int64) step { return step{kind: stepCommit, cost: cost, now: muchLater} }
	late := func(used int64) outcome { return outcome{done: true, viewed: true, used: used, late: true} }
	for name, c := range map[string]struct {
		right   bool
		history []timed
	}{
		"one behind the other":            {true, []timed{{1, 2, hit(15), yes}, {3, 4, hit(5), yes}, {5, 6, hit(1), no}, {7, 8, looks, look(20, 0)}}},
		"over the limit":                  {false, []timed{{1, 2, hit(15), yes}, {3, 4, hit(6), yes}}},
		"refused without a reason":        {false, []timed{{1, 2, hit(15), yes}, {3, 4, hit(5), no}}},
		"a charge that nobody sees":       {false, []timed{{1, 2, hit(5), yes}, {3, 4, looks, look(0, 0)}}},
		"a charge seen before its answer": {true, []timed{{1, 9, hit(5), yes}, {3, 4, looks, look(5, 0)}, {5, 6, looks, look(5, 0)}}},
		"seen, and then not":              {false, []timed{{1, 9, hit(5), yes}, {3, 4, looks, look(5, 0)}, {5, 6, looks, look(0, 0)}}},
		"charged twice":                   {false, []timed{{1, 2, hit(5), yes}, {3, 4, looks, look(10, 0)}}},
		"unknown, and done":               {true, []timed{{1, ever, hit(5), lost}, {3, 4, looks, look(5, 0)}}},
		"unknown, and not done":           {true, []timed{{1, ever, hit(5), lost}, {3, 4, looks, look(0, 0)}}},
		"unknown, and done late":          {true, []timed{{1, ever, hit(5), lost}, {3, 4, looks, look(0, 0)}, {5, 6, looks, look(5, 0)}}},
		"unknown, and done twice":         {false, []timed{{1, ever, hit(5), lost}, {3, 4, looks, look(5, 0)}, {5, 6, looks, look(10, 0)}}},
		"unknown, and done before":        {false, []timed{{1, 2, looks, look(5, 0)}, {3, ever, hit(5), lost}}},
		"refund of what there is": {true, []timed{
			{1, 2, hit(5), yes},
			{3, 4, step{kind: stepRefund, cost: 9}, outcome{done: true, units: 5}},
			{5, 6, looks, look(0, 0)},
		}},
		"refund of more":            {false, []timed{{1, 2, hit(5), yes}, {3, 4, step{kind: stepRefund, cost: 9}, outcome{done: true, units: 9}}}},
		"committed less":            {true, []timed{{1, 2, reserve, look(6, 6)}, {3, 4, commit(2), look(2, 0)}}},
		"committed less, rest kept": {false, []timed{{1, 2, reserve, look(6, 6)}, {3, 4, commit(2), look(6, 0)}}},
		"committed more than fits": {true, []timed{
			{1, 2, hit(10), yes},
			{3, 4, reserve, yes},
			{5, 6, commit(11), outcome{units: 10}},
			{7, 8, commit(10), look(20, 0)},
		}},
		"committed twice": {true, []timed{
			{1, 2, reserve, yes},
			{3, 4, commit(2), yes},
			{5, 6, commit(2), yes},
			{7, 8, commit(3), outcome{settled: true}},
			{9, 10, looks, look(2, 0)},
		}},
		"committed and released": {false, []timed{{1, 2, reserve, yes}, {3, 9, commit(2), yes}, {3, 9, step{kind: stepRelease}, yes}}},
		"expired": {true, []timed{
			{1, 2, brief, look(6, 6)},
			{3, 4, step{kind: stepLook, now: muchLater}, look(0, 0)},
			{5, 6, step{kind: stepHit, cost: 20, now: muchLater}, look(20, 0)},
		}},
		"expired, and still held": {false, []timed{{1, 2, brief, look(6, 6)}, {3, 4, step{kind: stepLook, now: muchLater}, look(6, 6)}}},
		"committed late": {true, []timed{
			{1, 2, brief, yes},
			{3, 4, step{kind: stepHit, cost: 16, now: muchLater}, look(16, 0)},
			{5, 6, tardy(5), outcome{units: 4}},
			{7, 8, tardy(4), late(20)},
		}},
		"committed late past the limit": {false, []timed{
			{1, 2, brief, yes},
			{3, 4, step{kind: stepHit, cost: 16, now: muchLater}, look(16, 0)},
			{5, 6, tardy(5), late(21)},
		}},
		"committed early, said late": {false, []timed{{1, 2, reserve, yes}, {3, 4, commit(5), late(5)}}},
		"too many in flight":         {false, []timed{{1, 2, reserve, yes}, {3, 4, step{kind: stepReserve, cost: 3, reservation: 1}, yes}}},
	} {
		var h []porcupine.Operation
		for i, o := range c.history {
			h = append(h, porcupine.Operation{ClientId: i, Input: o.in, Call: o.call, Output: o.out, Return: o.end})
		}
		if got := trueRules.linear(h); (got == porcupine.Ok) != c.right || got == porcupine.Unknown {
			t.Errorf("%s: %s", name, got)
		}
	}
}
