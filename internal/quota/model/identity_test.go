package model

import "testing"

// TestIdentitiesStay: a limit's identity says where its units are stored. Another one begins every
// bucket again, so none ever changes.
func TestIdentitiesStay(t *testing.T) {
	burst := int64(20)
	for _, c := range []struct {
		spec Spec
		want int64
	}{
		{Spec{Algorithm: "fixed_window", Window: "1h"}, 5317984745958730902},
		{Spec{Algorithm: "fixed_window", Window: "1h", Align: "clock"}, 5317984745958730902},
		{Spec{Algorithm: "fixed_window", Window: "60m", Mode: "soft"}, 5317984745958730902},
		{Spec{Algorithm: "fixed_window", Window: "1h", Align: "first_hit"}, 4509062387302184112},
		{Spec{Algorithm: "fixed_window", Window: "1h", Per: "ip"}, 3519449654405271737},
		{Spec{Algorithm: "fixed_window", Window: "calendar_day"}, 4079964068356287367},
		{Spec{Algorithm: "fixed_window", Window: "calendar_week"}, 8700102660900067953},
		{Spec{Algorithm: "fixed_window", Window: "calendar_month"}, 1130637839841975843},
		{Spec{Algorithm: "fixed_window", Window: "calendar_year"}, 217631699305798931},
		{Spec{Algorithm: "fixed_window", Window: "billing_period"}, 4354315095133208738},
		{Spec{Algorithm: "fixed_window", Window: "billing_period", Per: "ip"}, 5141463540065964776},
		{Spec{Algorithm: "token_bucket", Window: "1d"}, 6665245771981517940},
		{Spec{Algorithm: "token_bucket", Window: "1d", Burst: &burst}, 6665245771981517940},
		{Spec{Algorithm: "token_bucket", Window: "1d", Per: "ip", Mode: "shadow"}, 8344979389365914611},
		{Spec{Algorithm: "sliding_window", Window: "1m"}, 7879545370763553248},
		{Spec{Algorithm: "sliding_window", Window: "1m", Per: "ip"}, 2741971338562628626},
		{Spec{Algorithm: "sliding_log", Window: "1m"}, -2305906902660940661},
		{Spec{Algorithm: "sliding_log", Window: "1m", Precision: "1us"}, -2305906902660940661},
		{Spec{Algorithm: "sliding_log", Window: "1m", Precision: "1s"}, -6594038081004326741},
		{Spec{Algorithm: "sliding_log", Window: "1m", Precision: "1s", Per: "ip"}, -7234554773940244152},
		{Spec{Algorithm: "allocation"}, 2911515413097884793},
		{Spec{Algorithm: "allocation", Per: "team"}, 789258368338169471},
		{Spec{Algorithm: "concurrency", TTL: "10m"}, 3223633229160014383},
		{Spec{Algorithm: "concurrency", TTL: "1h", Per: "team"}, 2058400124070383398},
	} {
		c.spec.Name, c.spec.Limit = "limit", 10
		l, bad := Compile(c.spec)
		if bad != nil {
			t.Fatalf("%+v: %v", c.spec, bad)
		}
		if l.ID != c.want {
			t.Errorf("%+v has the identity %d", c.spec, l.ID)
		}
	}
}
