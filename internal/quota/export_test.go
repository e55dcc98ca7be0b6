package quota

import (
	"context"

	"quotad/internal/quota/model"
)

// Standings is StandingsIn without a view.
func (e *Engine) Standings(ctx context.Context, targets []*model.Target) ([]Standing, error) {
	return e.StandingsIn(ctx, nil, targets)
}
