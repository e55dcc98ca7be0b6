package quota

import "quotad/internal/quota/model"

// branchOf names the algorithm that a limit goes by, and its windows.
func branchOf(l *model.Limit) string {
	if l.FirstHit {
		return "first_hit"
	}
	if l.Calendar {
		return l.WindowText
	}
	return l.Algorithm.String()
}

var allBranches = []string{
	"fixed_window", "first_hit", "sliding_window", "sliding_log", "token_bucket", "allocation",
	"calendar_day", "calendar_week", "calendar_month", "calendar_year", "billing_period",
}
