package api

import (
	"fmt"
	"testing"

	"quotad/internal/quota/model"
)

func TestWhileStale(t *testing.T) {
	t.Parallel()
	for ends := 1; ends <= maxResolves+1; ends++ {
		asked := []int64{}
		err := whileStale(func(atLeast int64) error {
			asked = append(asked, atLeast)
			if len(asked) == ends {
				return nil
			}
			return fmt.Errorf("x: %w", &model.StaleError{Change: 10 * int64(len(asked))})
		})
		if tries := min(ends, maxResolves); len(asked) != tries || (err == nil) != (ends <= maxResolves) || asked[tries-1] != 10*int64(tries-1) {
			t.Errorf("ends at %d: asked %v, %v", ends, asked, err)
		}
	}
}
