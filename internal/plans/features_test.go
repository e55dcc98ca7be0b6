package plans

import (
	"math"
	"testing"
)

func TestDecimals(t *testing.T) {
	for _, good := range []string{"0", "1", "0.0004", "007", "999999999999999.999999999999", "1.0"} {
		if !isDecimal(good) {
			t.Errorf("%q must be a price", good)
		}
	}
	for _, bad := range []string{
		"", ".", "1.", ".5", "-1", "+1", "1e3", "1,5", " 1", "1 ", "0x1", "１", "1.2.3", "NaN",
		"1000000000000000", "0.0000000000001",
	} {
		if isDecimal(bad) {
			t.Errorf("%q must not be a price", bad)
		}
	}
}

func FuzzFeature(f *testing.F) {
	f.Add(1.5)
	f.Add(math.Inf(1))
	f.Add(math.Copysign(0, -1))
	f.Add(1e15)
	f.Fuzz(func(t *testing.T, v float64) {
		if got, fault := feature(v); fault == "" && float64(got.(int64)) != v {
			t.Errorf("%v became %v", v, got)
		}
	})
}
