package quota

import "slices"

// decideOn is a decision on rows, charged: the rows behind it are returned too.
func decideOn(t *Target, rows []row, now, cost int64) (Decision, []row) {
	d := judge(t, rows, now, cost)
	if !d.Allowed {
		return d, rows
	}
	after := slices.Clone(rows)
	d.chargeTo(after)
	for i := range after {
		after[i].version, after[i].change = rows[i].version+1, max(rows[i].change, t.Change)
	}
	return d.behind(after), after
}

// loggedAt is a log's bucket behind a charge at an instant.
func loggedAt(l *Limit, dst []int64, level int64, log []int64, at, cost int64) []int64 {
	level, blocks := l.chargeLog(level, l.logBlocks(log, at), at, cost)
	return l.encodeLog(dst, level, blocks)
}

// branchOf names the algorithm that a limit goes by, and its windows.
func branchOf(l *Limit) string {
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
