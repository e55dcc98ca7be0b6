package api

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"quotad/internal/api/hits"
	"quotad/internal/plans/catalog"
	"quotad/internal/testkit"
)

// An atomic batch of more customers than it is judged again for, whose overrides have all just ended.
// No write tells of the ends: the change lock is held.
func TestOverridesThatEndTogether(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUp(hourly)
	ends := n.nowOf().Add(time.Hour).UTC()
	hits := make([]string, catalog.MaxResolves+2)
	for i := range hits {
		key := fmt.Sprintf("c%d", i)
		n.want(201, "PUT", "/v1/customers/"+key, `{"name":"A","plan":"pro"}`)
		n.want(201, "PUT", "/v1/customers/"+key+"/overrides/hourly", fmt.Sprintf(`{"limit":50,"expires_at":%q}`, ends.Format(time.RFC3339Nano)))
		hits[i] = `{"customer":"` + key + `","meter":"requests"}`
	}
	body := `{"atomic":true,"hits":[` + strings.Join(hits, ",") + `]}`
	n.want(200, "POST", "/v1/hits/batch", body)
	tx, err := n.store.Pool().Begin(t.Context())
	check(t, err)
	defer func() { check(t, tx.Rollback(testkit.Context(t))) }()
	_, err = tx.Exec(t.Context(), `SELECT FROM change_number FOR UPDATE`)
	check(t, err)
	n.leap(ends.Add(inexact))
	if text := n.want(200, "POST", "/v1/hits/batch", body).text; strings.Count(text, `"limit":5,`) != len(hits) {
		t.Errorf("not all are judged by the plan: %s", text)
	}
}

// The running hour of a zone beside UTC began before 1970 when a test clock is set back to its begin.
func TestTheFirstHourOf1970(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUp(hourly)
	n.want(201, "PUT", "/v1/test-clocks/c", `{"now":"2026-01-15T00:00:00Z"}`)
	n.want(201, "PUT", "/v1/customers/kolkata", `{"name":"A","plan":"pro","timezone":"Asia/Kolkata","test_clock":"c"}`)
	n.want(200, "PUT", "/v1/test-clocks/c", `{"now":"1970-01-01T00:10:00Z"}`)
	for _, id := range []string{"", `,"id":"x"`, `,"id":"y"`} {
		n.want(200, "POST", hits.Pattern, `{"customer":"kolkata","meter":"requests"`+id+`}`)
	}
	n.want(200, "GET", "/v1/customers/kolkata/quota", "")
}
