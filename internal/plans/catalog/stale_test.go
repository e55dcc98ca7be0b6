package catalog

import (
	"fmt"
	"testing"

	"quotad/internal/quota/model"
)

func TestWhileStale(t *testing.T) {
	t.Parallel()
	for ends := 1; ends <= MaxResolves+1; ends++ {
		asked := []int64{}
		err := WhileStale(func(atLeast int64) error {
			asked = append(asked, atLeast)
			if len(asked) == ends {
				return nil
			}
			return fmt.Errorf("x: %w", &model.StaleError{Change: 10 * int64(len(asked))})
		})
		if tries := min(ends, MaxResolves); len(asked) != tries || (err == nil) != (ends <= MaxResolves) || asked[tries-1] != 10*int64(tries-1) {
			t.Errorf("ends at %d: asked %v, %v", ends, asked, err)
		}
	}
}
