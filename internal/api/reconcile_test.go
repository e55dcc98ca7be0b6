package api

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
)

// reconciled returns the checks that find rows, each with its first example.
func (n *node) reconciled() map[string]string {
	n.t.Helper()
	got := n.want(200, "GET", "/v1/reconcile", "").json
	bad := make(map[string]string)
	for _, c := range got["checks"].([]any) {
		c := c.(map[string]any)
		examples := c["examples"].([]any)
		if (c["rows"] != 0.) != (len(examples) > 0) || len(examples) > 10 {
			n.t.Errorf("%v", c)
		}
		if len(examples) > 0 {
			bad[c["name"].(string)] = fmt.Sprint(examples[0])
		}
	}
	if got["ok"] != (len(bad) == 0) {
		n.t.Errorf("ok is %v: %v", got["ok"], bad)
	}
	return bad
}

// agreed fails the test unless all checks hold.
func (n *node) agreed(when string) {
	n.t.Helper()
	if bad := n.reconciled(); len(bad) > 0 {
		n.t.Errorf("%s: %v", when, bad)
	}
}

// superuser returns a session without triggers and foreign keys, as only a superuser can have it.
func (n *node) superuser() *pgx.Conn {
	n.t.Helper()
	mine, err := pgx.ParseConfig(n.database)
	check(n.t, err)
	config, err := pgx.ParseConfig(pgtest.AdminURL(n.t))
	check(n.t, err)
	config.Database = mine.Database
	config.RuntimeParams["session_replication_role"] = "replica"
	conn, err := pgx.ConnectConfig(testkit.Context(n.t), config)
	check(n.t, err)
	return conn
}

// exec runs SQL in a superuser's session of its own.
func (n *node) exec(statements string) {
	n.t.Helper()
	conn := n.superuser()
	defer conn.Close(testkit.Context(n.t))
	changeBy(n.t, conn, statements)
}

// changeBy runs SQL, and fails the test if the last statement changes no row.
func changeBy(t testing.TB, conn *pgx.Conn, statements string) {
	t.Helper()
	done, err := conn.Exec(testkit.Context(t), statements)
	check(t, err)
	if strings.HasPrefix(done.String(), "UPDATE 0") || strings.HasPrefix(done.String(), "DELETE 0") {
		t.Fatalf("nothing was changed by %s", statements)
	}
}

// settled sets the clock and waits until nothing is due: for a customer on a test clock by that clock, and for others by
// the time that is set.
func (n *node) settled(now string) {
	n.t.Helper()
	n.setTo(now)
	at, err := time.Parse(time.RFC3339, now)
	check(n.t, err)
	testkit.Eventually(n.t, "nothing is due at "+now, func() bool {
		var due int
		check(n.t, n.store.Pool().QueryRow(testkit.Context(n.t),
			`SELECT (SELECT count(*) FROM open_periods o LEFT JOIN test_clocks c ON c.id = o.clock_id WHERE o.due_at <= coalesce(c.now, $1)) +
				(SELECT count(*) FROM owed_calls)`, at.UnixMicro()).Scan(&due))
		return due == 0
	})
}

// A quarter of billing by the API agrees with itself at each step.
func TestReconcileAgrees(t *testing.T) {
	t.Parallel()
	n := bookedNode(t)
	invoice := "/v1/invoices/" + n.invoicesOf("acme")[0]
	n.want(201, "POST", invoice+"/credit-notes", `{"lines":[{"n":1,"amount_minor":333}],"reason":"x","to":"outside","id":"n1"}`)
	n.agreed("after a part was credited")
	n.want(200, "POST", invoice+"/pay", `{}`)
	n.want(201, "POST", invoice+"/credit-notes", `{"lines":[{"n":1,"amount_minor":1667}],"reason":"x","to":"credits","id":"n2"}`)
	n.agreed("after more was credited")
	beta := n.invoicesOf("beta")
	n.want(200, "POST", "/v1/invoices/"+beta[len(beta)-1]+"/void", `{"reason":"x","reissue":true}`)
	n.agreed("with a reissue to come")
	n.settled("2026-03-05T00:00:00Z")
	n.agreed("after a reissue")
	acme := n.invoicesOf("acme")
	n.want(200, "POST", "/v1/invoices/"+acme[1]+"/void", `{"reason":"x"}`)
	n.agreed("after an invoice was written off")
	n.settled("2026-04-03T00:00:00Z")
	n.agreed("after what it corrected came onto another")
	n.bill(200, "acme", `{"ends_at":"2026-05-01T00:00:00Z"}`)
	n.settled("2026-06-01T00:00:00Z")
	n.agreed("after the end of billing")
	n.bill(200, "acme", `{"ends_at":null}`)
	n.settled("2026-09-01T00:00:00Z")
	n.agreed("in a new chain")
	n.want(200, "DELETE", "/v1/customers/beta?erase=true", "")
	n.settled("2026-09-02T00:00:00Z")
	n.agreed("after an erasure")
}

// tables are those that faults are planted in.
var tables = []string{
	"counters", "usage", "adjustments", "periods", "open_periods", "billing_accounts", "invoices", "invoice_lines", "line_adjustments", "open_adjustments",
	"charges", "credits", "credit_entries", "sellers", "payments", "note_money", "unpaid_invoices", "customer_terms",
}

// columns are the columns of a table that can be written.
func (n *node) columns(table string) string {
	n.t.Helper()
	var all string
	check(n.t, n.store.Pool().QueryRow(testkit.Context(n.t), `SELECT string_agg(quote_ident(column_name), ', ') FROM information_schema.columns
		WHERE table_schema = 'public' AND table_name = $1 AND is_generated = 'NEVER'`, table).Scan(&all))
	return all
}

// tableCopies are copies of the tables, by which planted faults are undone.
type tableCopies struct {
	conn    *pgx.Conn
	restore map[string]string // by table, the statements that restore its rows
}

// keep copies the tables.
func (n *node) keep() *tableCopies {
	n.t.Helper()
	k := &tableCopies{n.superuser(), map[string]string{}}
	n.t.Cleanup(func() { k.conn.Close(testkit.Context(n.t)) })
	var copies strings.Builder
	for _, table := range tables {
		fmt.Fprintf(&copies, "CREATE TABLE kept_%[1]s AS TABLE %[1]s;", table)
		k.restore[table] = fmt.Sprintf("DELETE FROM %[1]s; INSERT INTO %[1]s (%[2]s) OVERRIDING SYSTEM VALUE SELECT %[2]s FROM kept_%[1]s;", table, n.columns(table))
	}
	changeBy(n.t, k.conn, copies.String())
	return k
}

var writtenTable = regexp.MustCompile(`(?:UPDATE|INSERT INTO|DELETE FROM) (\w+)`)

// plant runs the statements of a fault, and returns a function that restores the tables that these write.
// No trigger writes any other table.
func (k *tableCopies) plant(t testing.TB, statements string) (restore func()) {
	t.Helper()
	back := ""
	for _, written := range writtenTable.FindAllStringSubmatch(statements, -1) {
		if k.restore[written[1]] == "" {
			t.Fatalf("table %s is not kept", written[1])
		}
		back += k.restore[written[1]]
	}
	changeBy(t, k.conn, statements)
	return func() { changeBy(t, k.conn, "BEGIN;"+back+"COMMIT") }
}

// Each check finds the faults that it is for, and no other check finds anything but what such a
// fault makes wrong, too.
func TestReconcileFinds(t *testing.T) {
	t.Parallel()
	n := bookedNode(t)
	n.want(201, "POST", "/v1/invoices/"+n.invoicesOf("acme")[0]+"/credit-notes", `{"lines":[{"n":1,"amount_minor":333}],"reason":"x","to":"outside","id":"n1"}`)
	owed := "/v1/invoices/" + n.invoicesOf("acme")[1]
	n.want(200, "POST", owed+"/pay", `{"amount_minor":100}`)
	n.want(201, "POST", "/v1/customers/acme/credits", `{"amount_minor":50,"currency":"USD","id":"later"}`)
	n.want(200, "POST", owed+"/apply-credits", "")
	n.want(201, "PUT", "/v1/customers/beta/caps/requests", `{"amount_minor":1000000}`)
	n.want(200, "POST", "/v1/hits", `{"customer":"beta","meter":"requests","cost":5}`)
	n.want(201, "POST", "/v1/customers/beta/adjustments", `{"meter":"requests","cost":-2,"reason":"r","id":"capped"}`)
	n.agreed("at first")
	kept := n.keep()
	const (
		acme    = ` (SELECT id FROM customers WHERE key = 'acme') `
		beta    = ` (SELECT id FROM customers WHERE key = 'beta') `
		ahead   = ` (SELECT id FROM customers WHERE key = 'ahead') `
		meter   = ` (SELECT id FROM meters WHERE key = 'requests') `
		first   = ` (SELECT id FROM invoices WHERE customer_id = ` + acme + ` AND kind = 'period' ORDER BY period_end LIMIT 1) `
		next    = ` (SELECT id FROM invoices WHERE customer_id = ` + acme + ` AND kind = 'period' ORDER BY period_end OFFSET 1 LIMIT 1) `
		opening = ` (SELECT id FROM invoices WHERE customer_id = ` + ahead + ` AND kind = 'opening') `
		line    = ` (SELECT n FROM invoice_lines WHERE invoice_id = ` + first + ` AND meter = 'requests') `
		// February the first, and a day in January, in µs.
		february, january = `1769904000000000`, `1767744000000000`
	)
	for _, c := range slices.Concat(plantedPrices(first, line), plantedNumbers, plantedCopies(acme, first), plantedPayments(first, next),
		plantedLost(first), []planted{
			{
				"a unit was charged and not booked", `UPDATE counters SET total = total + 1 WHERE attribute = '' AND customer =` + acme + `AND meter =` + meter,
				"charged_is_booked", "meter:requests",
			},
			{
				"a cap lost a unit", `UPDATE counters SET state[array_position(state, 1) + 1] = state[array_position(state, 1) + 1] - 1 WHERE attribute = '' AND 1 = ANY (state) AND customer =` + beta + `AND meter =` + meter,
				"caps_count_booked", "expected:3 found:2",
			},
			{
				"an adjustment of a capped meter is gone", `DELETE FROM adjustments WHERE cost = -2 AND customer =` + beta,
				"caps_count_booked", "expected:5 found:3",
			},
			{
				"a unit was booked and not charged", `INSERT INTO usage (shard, customer, meter, hour, admitted) SELECT shard, customer, 77, 0, 1 FROM counters LIMIT 1`,
				"charged_is_booked", "meter:id 77",
			},
			{
				"a counter was judged under a change that there is not",
				`UPDATE counters SET change = change + (SELECT number FROM change_number) WHERE attribute = '' AND customer =` + acme + `AND meter =` + meter,
				"changes_exist", "meter:requests",
			},
			{
				"a booked hour changed", `UPDATE usage SET admitted = admitted + 1 WHERE customer =` + acme + `AND meter =` + meter + `AND hour < ` + february,
				"charged_is_booked usage_is_billed", "found:301",
			},
			{
				"an adjustment is gone", `DELETE FROM adjustments WHERE customer =` + acme + `AND meter =` + meter + `AND cost = 7`,
				"usage_is_billed", "expected:253",
			},
			{
				"a correction's adjustment changed", `UPDATE adjustments SET cost = -31 WHERE customer =` + acme + `AND meter =` + meter + `AND cost = -30`,
				"usage_is_billed", "correction",
			},
			{
				"a period has no invoice", `DELETE FROM invoice_lines WHERE invoice_id =` + first + `; DELETE FROM invoices WHERE id =` + first,
				"numbers_have_no_gap rated_is_billed usage_is_billed", "is missing",
			},
			{
				"a subtotal", `UPDATE invoices SET subtotal_minor = subtotal_minor + 1, total_minor = total_minor + 1, amount_due_minor = amount_due_minor + 1 WHERE id =` + first,
				"digests_match lines_are_totals", "number:",
			},
			{
				"a tax", `UPDATE invoices SET tax_minor = tax_minor + 1, total_minor = total_minor + 1, amount_due_minor = amount_due_minor + 1 WHERE id =` + first,
				"digests_match lines_are_totals", "number:",
			},
			{
				"an amount due", `UPDATE invoices SET amount_due_minor = amount_due_minor - 1 WHERE id =` + first,
				"digests_match lines_are_totals", "number:",
			},
			{
				"a credit note's tax", `UPDATE invoices SET tax_minor = tax_minor - 1, total_minor = total_minor - 1 WHERE kind = 'credit_note'`,
				"digests_match lines_are_totals", "number:",
			},
			{
				"a credit note took more than a line",
				`UPDATE invoice_lines SET amount_minor = -2001 WHERE invoice_id = (SELECT id FROM invoices WHERE kind = 'credit_note')`,
				"digests_match lines_are_given_back_once lines_are_totals", "number:",
			},
			{
				"an invoice is credited that is not", `UPDATE invoices SET status = 'credited' WHERE id =` + next,
				"due_is_settled lines_are_totals", "credited",
			},
			{
				"a credit paid less", `UPDATE credit_entries SET amount_minor = amount_minor + 1 WHERE kind = 'applied' AND invoice_id =` + first,
				"credits_add_up lines_are_totals", "welcome",
			},
			{
				"a charge is not on its invoice", `UPDATE charges SET amount_minor = amount_minor + 1 WHERE customer_id =` + acme,
				"lines_are_totals", "charges",
			},
			{
				"a line's amount", `UPDATE invoice_lines SET amount_minor = amount_minor + 1 WHERE invoice_id =` + first + `AND n =` + line,
				"digests_match lines_are_totals rated_is_billed", "number:",
			},
			{
				"a correction's amount", `UPDATE invoice_lines SET amount_minor = amount_minor - 1 WHERE invoice_id =` + next +
					`AND kind = 'correction' AND meter = 'requests'`,
				"digests_match lines_are_totals rated_is_billed", "number:",
			},
			{
				"a correction of more than its line", `UPDATE invoice_lines SET amount_minor = -100000 WHERE invoice_id =` + next +
					`AND kind = 'correction' AND meter = 'requests'`,
				"digests_match lines_are_given_back_once lines_are_totals rated_is_billed", "number:",
			},
			{
				"the price of a period", `UPDATE periods SET prices = '{"requests":{"model":"per_unit","unit_price":"0.02","included":100}}' WHERE n = 0 AND customer_id =` + acme,
				"rated_is_billed", "cost another amount",
			},
			{
				"the period that a base in advance is of", `UPDATE open_periods SET full_end = full_end + 86400000000 WHERE customer_id =` + ahead,
				"rated_is_billed", "the base price in advance",
			},
			{
				"an opening's base", `UPDATE invoice_lines SET amount_minor = amount_minor + 1 WHERE kind = 'base' AND invoice_id =` + opening,
				"digests_match lines_are_totals rated_is_billed", "number:",
			},
			{
				"the period of a base in advance is gone", `UPDATE open_periods SET start_at = NULL, end_at = NULL WHERE customer_id =` + ahead,
				"rated_is_billed", "no billing period",
			},
			{
				"a period is missing", `DELETE FROM periods WHERE n = 0 AND customer_id =` + acme,
				"periods_are_chained rated_is_billed", "Chain 0 begins with period 1",
			},
			{
				"a period begins late", `UPDATE periods SET start_at = start_at + 1 WHERE n = 1 AND customer_id =` + acme,
				"periods_are_chained rated_is_billed", "comes after period 0",
			},
			{
				"the open period begins late", `UPDATE open_periods SET start_at = start_at + 1 WHERE customer_id =` + acme,
				"periods_are_chained", "begin where that one ended",
			},
			{
				"the open period is one of the closed", `UPDATE open_periods SET n = n - 1 WHERE customer_id =` + acme,
				"periods_are_chained", "comes after period 1",
			},
			{
				"nobody bills a customer", `DELETE FROM open_periods WHERE customer_id =` + acme,
				"periods_are_chained", "no account, or no row",
			},
			{
				"what an invoice says", `UPDATE invoice_lines SET description = 'Nothing' WHERE invoice_id =` + first + `AND n =` + line,
				"digests_match", "says something else",
			},
			{
				"who an invoice is of", `UPDATE invoices SET document = jsonb_set(document, '{buyer,name}', '"Nobody"') WHERE id =` + first,
				"digests_match", "says something else",
			},
			{
				"an adjustment that no invoice claims", `INSERT INTO adjustments (shard, customer, meter, hour, cost, at, key, reason)
			SELECT shard, customer, meter, ` + january + `, 4, ` + february + ` + 86400000000, gen_random_uuid(), 'lost' FROM counters
			WHERE attribute = '' AND customer =` + acme + `AND meter =` + meter,
				"adjustments_are_claimed", "at:2026-01-07",
			},
			{
				"a claim is gone", `DELETE FROM line_adjustments WHERE invoice_id =` + next + `AND meter =` + meter,
				"adjustments_are_claimed usage_is_billed", "30 units",
			},
			{
				"a claim of a correction of nothing is gone", `DELETE FROM line_adjustments WHERE key = (SELECT key FROM adjustments WHERE cost = -1)`,
				"adjustments_are_claimed", "-1 units",
			},
			{
				"where a correction starts", `UPDATE invoice_lines SET billed_before = jsonb_set(billed_before, '{quantity}', to_jsonb((billed_before->>'quantity')::bigint + 1)) WHERE invoice_id =` + next +
					`AND kind = 'correction' AND meter = 'requests'`,
				"digests_match rated_is_billed", "number:",
			},
			{
				"what a correction takes off", `UPDATE invoice_lines SET billed_before = jsonb_set(billed_before, '{amount_minor}', '1') WHERE invoice_id =` + next +
					`AND kind = 'correction' AND meter = 'requests'`,
				"digests_match rated_is_billed", "number:",
			},
			{
				"a credit's rest", `UPDATE credits SET left_minor = left_minor + 1 WHERE id = 'welcome'`,
				"credits_add_up", "add up to",
			},
			{
				"a credit's amount", `UPDATE credits SET amount_minor = amount_minor + 1 WHERE id = 'brief'`,
				"credits_add_up", "that was granted",
			},
			{
				"a credit's expiry is not booked", `DELETE FROM credit_entries WHERE kind = 'expired'`,
				"credits_add_up", "brief",
			},
			{
				"a period that cannot be closed", `UPDATE open_periods SET blocked = 'the plan is unreadable' WHERE customer_id =` + acme,
				"periods_can_close", "unreadable",
			},
			{
				"a customer is on a pin that is not billed", `UPDATE customer_terms SET pinned_version = 1 WHERE customer_id =` + acme,
				"terms_agree", "newest terms",
			},
		}) {
		t.Run(c.name, func(t *testing.T) {
			n := *n
			n.t = t
			restore := kept.plant(t, c.plant)
			bad := n.reconciled()
			names := slices.Sorted(maps.Keys(bad))
			if strings.Join(names, " ") != c.finds || !strings.Contains(bad[names[0]], c.example) {
				t.Errorf("found %v, want %s with %q", bad, c.finds, c.example)
			}
			restore()
		})
	}
	n.agreed("after all faults were undone")
}
