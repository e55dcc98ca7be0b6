package quota

// decideOn is a decision on rows, charged: the rows behind it are returned too.
func decideOn(t *Target, rows []row, now, cost int64) (Decision, []row) {
	d := judge(t, rows, now, cost)
	if !d.Allowed {
		return d, rows
	}
	var spared uint32
	after := make([]row, len(rows))
	for i := range rows {
		m := t.moment(d.At)
		state, bits := chargeState(nil, t.Counters[i].Limits, rows[i].state, rows[i].at, cost, m)
		after[i] = row{state: state, at: d.At, version: rows[i].version + 1, change: max(rows[i].change, t.Change)}
		spared |= bits << t.firstLimit(i)
	}
	d = judge(t, after, d.At, cost)
	d.Allowed, d.charged, d.spared = true, true, spared
	return d, after
}

// loggedAt is a log's bucket behind a charge at an instant.
func (l *Limit) loggedAt(dst []int64, level int64, log []int64, at, cost int64) []int64 {
	level, blocks := l.chargeLog(level, l.logBlocks(log, at), at, cost)
	return l.encodeLog(dst, level, blocks)
}

// branchOf names the algorithm that a limit goes by, and its windows.
func branchOf(l *Limit) string {
	if _, ok := l.rules.(firstHitWindow); ok {
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
