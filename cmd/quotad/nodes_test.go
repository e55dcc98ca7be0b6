package main

import (
	"strings"
	"testing"
	"time"

	"quotad/internal/testkit"
)

// within is the contract's: a change counts on every node within one second. See hears and inTime.
const within = time.Second

func TestRaisedLimitLetsInOnASecondNode(t *testing.T) {
	t.Parallel()
	one := start(t, "")
	two := start(t, one.databaseURL)
	one.setUp(fixed("l", 5))
	for limit, left := 5, int64(5); limit <= 25; limit, left = limit+5, 4 {
		one.hit(left).is(200)
		one.hit(1).is(429)
		two.hit(1).is(429)
		if two.hit(1).is(429).at("as_of") == nil {
			t.Error("the refusal does not come from memory, so this test shows nothing")
		}
		one.do("PUT", "/v1/plans/basic", planOf(fixed("l", limit+5)), "If-Match: *").is(201)
		testkit.AtMost(t, "the raised limit lets a hit in on the second node", testkit.Eventually(t, "the raised limit counts", func() bool {
			return two.hit(1).status == 200
		}), within)
	}
	// On the node that was asked it counts at once.
	one.hit(4).is(200)
	one.hit(1).is(429)
	one.hit(1).is(429)
	one.do("PUT", "/v1/plans/basic", planOf(fixed("l", 35)), "If-Match: *").is(201)
	one.hit(1).is(200)
	one.hit(4).is(200)
	// So it does for a customer who comes to another plan.
	one.do("PUT", "/v1/plans/wide", planOf(fixed("l", 1000))).is(201)
	two.hit(1).is(429)
	two.hit(1).is(429)
	one.do("PUT", "/v1/customers/acme", strings.Replace(onPlan, "basic", "wide", 1), "If-Match: *").is(200)
	two.hears()
	two.hit(1).is(200)
}

func TestChangesCountOnASecondNode(t *testing.T) {
	t.Parallel()
	one := start(t, "")
	two := start(t, one.databaseURL)
	one.setUp(fixed("l", 5))
	id, secret := one.newKey("backend")
	two.hears()
	two.as(secret).do("GET", "/v1/customers/acme/quota", "").is(200)
	one.do("DELETE", "/v1/keys/"+id, "").is(204)
	testkit.AtMost(t, "a revoked key is refused on the second node", two.hears(), within)
	two.as(secret).do("GET", "/v1/customers/acme/quota", "").is(401)

	two.hit(1).is(200)
	one.do("PUT", "/v1/plans/basic", planOf(fixed("l", 2)), "If-Match: *").is(201)
	two.hears()
	two.hit(0).is(200).has("limits.0.limit", 2)
	one.do("DELETE", "/v1/customers/acme", "").is(204)
	two.hears()
	two.hit(1).is(404)
	// Who was unknown a moment ago is known as soon as somebody makes it.
	two.do("POST", "/v1/hits", hitOf("new", "requests", "")).is(404)
	one.do("PUT", "/v1/customers/new", onPlan).is(201)
	two.hears()
	two.do("POST", "/v1/hits", hitOf("new", "requests", "")).is(200)
}

// A batch answers all hits that wait, so few connections show best whether hits ask the database.
func TestRefusedCustomerSendsNoStatement(t *testing.T) { refusedCustomerSendsNoStatement(t, 4, 800) }

// TestMoreRefusedCustomerSendsNoStatement sends as many hits from as many connections as a customer may who is refused.
func TestMoreRefusedCustomerSendsNoStatement(t *testing.T) {
	refusedCustomerSendsNoStatement(t, 32, 1000)
}

// refusedCustomerSendsNoStatement measures the life of a whole node: a node's sessions hand their counts to the server's
// statistics when they end at the latest.
func refusedCustomerSendsNoStatement(t *testing.T, connections, each int) {
	t.Helper()
	t.Parallel()
	one := start(t, "")
	one.setUp(fixed("l", 5))
	one.hit(5).is(200)
	if err := one.stop(); err != nil {
		t.Fatal(err)
	}
	const lookUps = `SELECT coalesce(idx_scan, 0) + seq_scan + n_tup_upd + n_tup_ins FROM pg_stat_user_tables WHERE relname = 'counters'`
	const transactions = `SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()`
	const sessions = `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()`
	settled := func() (int64, int64) {
		testkit.Eventually(t, "the node's sessions end", func() bool { return query[int64](t, one.databaseURL, sessions) == 0 })
		return query[int64](t, one.databaseURL, lookUps), query[int64](t, one.databaseURL, transactions)
	}
	looked, committed := settled()

	began := time.Now()
	two := start(t, one.databaseURL)
	two.hit(1).is(429)
	two.hit(1).is(429)
	hits := int64(connections * each)
	counts := two.hammer(connections, each, hitOf("acme", "requests", ""))
	took := time.Since(began)
	if counts[429] != hits {
		t.Errorf("answers by status: %v", counts)
	}
	stats := two.node.engine.Stats()
	if err := two.stop(); err != nil {
		t.Fatal(err)
	}
	lookedAfter, committedAfter := settled()
	t.Logf("%d refusals in %s: %d look-ups of counters and %d transactions in the node's whole life, %d batches",
		hits, took, lookedAfter-looked, committedAfter-committed, stats.Batches)
	// The memory forgets nothing within the window, but where the node has lost sight of
	// changes for a second it must ask; then each connection may, once.
	if lookedAfter-looked > max(hits/100, int64(connections)*int64(1+took.Seconds())) {
		t.Errorf("%d look-ups of counters for %d refusals", lookedAfter-looked, hits)
	}
	// What remains is the node's own housekeeping: polls, the numbering of events, edits that may have reached
	// a threshold, statistics, this test's looks, and for each of its sessions what sets them up. A part of the
	// hits more is still no statement a refusal: even one for all that wait at once would be several times as many.
	if housekeeping := int64(230+33*took.Seconds()) + hits/100; committedAfter-committed > housekeeping {
		t.Errorf("%d transactions, of which housekeeping explains %d", committedAfter-committed, housekeeping)
	}
}
