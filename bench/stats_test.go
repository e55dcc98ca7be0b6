package main

import "testing"

func TestSpreadOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		values []float64
		want   spread
	}{
		{nil, spread{}},
		{[]float64{3}, spread{3, 3, 3}},
		{[]float64{5, 1, 3}, spread{3, 1, 5}},
		{[]float64{4, 1, 2, 9}, spread{3, 1, 9}},
	} {
		if got := spreadOf(c.values); got != c.want {
			t.Errorf("%v: %v, not %v", c.values, got, c.want)
		}
	}
	values := []float64{2, 1}
	if spreadOf(values); values[0] != 2 {
		t.Error("the rounds were put in another order")
	}
}

func TestPer(t *testing.T) {
	t.Parallel()
	if per(3, 2) != 1.5 || per(3, 0) != 0 {
		t.Errorf("%v %v", per(3, 2), per(3, 0))
	}
}

// A batch counts its hits, and is held against the handler's single requests.
func TestRatioOfABatch(t *testing.T) {
	t.Parallel()
	got := result{Rounds: []round{{Handler: 100, Row: 5}, {Handler: 100, Row: 7}, {Handler: 200, Row: 8}}}
	got.sum(&row{load: load{batch: 100}})
	if got.Ratio != (spread{5, 4, 7}) || got.Hits != (spread{700, 500, 800}) || got.Handler != (spread{100, 100, 200}) {
		t.Errorf("%+v", got)
	}
}
