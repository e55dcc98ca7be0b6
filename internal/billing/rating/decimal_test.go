package rating

import (
	"testing"

	"github.com/cockroachdb/apd/v3"
)

// An operation that would lose a digit is an error, even one with a single digit too many.
func TestNothingIsRoundedUnnoticed(t *testing.T) {
	var got apd.Decimal
	if _, err := exactly.Quo(&got, apd.New(1, 0), apd.New(3, 0)); err == nil {
		t.Errorf("a third is %s", &got)
	}
	if _, err := exactly.Add(&got, apd.New(1, precision), apd.New(1, 0)); err == nil {
		t.Errorf("%d digits are %s", precision+1, &got)
	}
	if _, err := exactly.Mul(&got, apd.New(1, precision-1), apd.New(10, 0)); err != nil {
		t.Errorf("a number of one digit: %v", err)
	}
}
