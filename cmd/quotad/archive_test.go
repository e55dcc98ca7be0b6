package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"quotad/internal/testkit"
	"quotad/internal/testkit/planstest"
	"quotad/internal/testkit/quotatest"
)

// quotad archive says what it did and what is next, or why it did nothing.
func TestArchiveCommand(t *testing.T) {
	t.Parallel()
	n := start(t, "")
	n.setUp(`{"name":"l","meter":"requests","algorithm":"allocation","limit":100}`)
	n.hit(3).is(200)
	env := map[string]string{"QUOTAD_DATABASE_URL": n.databaseURL}
	refused := func(code int, says string, args ...string) {
		t.Helper()
		got, out, errs := cli(t, env, append([]string{"archive"}, args...)...)
		if got != code || out != "" || !strings.Contains(errs, says) {
			t.Errorf("%v: code %d: %s%s", args, got, out, errs)
		}
	}
	refused(2, "must be the first instant of a month in UTC, such as 2026-01-01, not \"soon\"", "--before=soon")
	refused(1, "nothing was changed. Of what was before 2020-01-01T00:00:00Z: one table has all hours before 20", "--before=2020-01", "--dry-run")
	refused(1, "nothing was changed", "--before=2020-01-02")
	quotatest.SplitMonths(testkit.Context(t), t, planstest.NewPool(t, n.databaseURL), time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC), 2)
	refused(1, "too young", "--before="+time.Now().UTC().AddDate(0, 1, 0).Format("2006-01"))
	for _, dry := range []bool{true, false} {
		args := []string{"archive", "--before=2020-02-01"}
		if dry {
			args = append(args, "--dry-run")
		}
		code, out, errs := cli(t, env, args...)
		var done archived
		if err := json.Unmarshal([]byte(out), &done); err != nil || code != 0 {
			t.Fatalf("code %d: %s%s", code, out, errs)
		}
		if tables := strings.Join(done.Tables, " "); done.DryRun != dry || dry != (tables == "") || !dry && !strings.Contains(tables, "archived_usage_2020_01") {
			t.Errorf("%+v", done)
		}
		if !dry && (len(done.Next) != 2*len(done.Tables) || done.Total != 2) {
			t.Errorf("%+v", done)
		}
	}
	if code, out, _ := cli(t, env, "reconcile"); code != 0 || !strings.Contains(out, `"months": 2`) {
		t.Error(out)
	}
	n.hit(3).is(200)
}
