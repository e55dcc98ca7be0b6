package closing

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"quotad/internal/billing"
	"quotad/internal/billing/assembly"
	"quotad/internal/billing/invoices"
	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
	"quotad/internal/testkit/planstest"
)

// aPeriod is a row of periods after the last closed one of acme, l, whose instants are given.
const aPeriod = `
	INSERT INTO periods (customer_id, chain, n, start_at, end_at, prior_end, full_start, full_end, known_end, trial, plan_id, version, prices, closed_at)
	SELECT l.customer_id, CHAIN, N, START, FINISH, PRIOR, START, FINISH, FINISH, false, plan_id, version, '{}', 0
	FROM periods l WHERE l.customer_id = ACME AND l.chain = 0 AND l.n = 1`

// period is aPeriod with its values.
func period(chain, n, start, end, prior string) string {
	return strings.NewReplacer("CHAIN", chain, "N,", n+",", "START", start, "FINISH", end, "PRIOR", prior).Replace(aPeriod)
}

const day = "86400000000"

// aNumber is a row of invoices with a number of the series.
func aNumber(seller, number string) string {
	return `UPDATE invoices SET status = 'finalized', series = 'test', seller = ` + seller + `, number = ` + number +
		`, prefix = 'TEST-', finalized_at = 0, digest = '\x00' WHERE id = DRAFT`
}

// goOn tells the series test of a prefix to go on with a number.
func goOn(prefix, number string) string {
	return `INSERT INTO seller_skips VALUES ('default', 'test', '` + prefix + `', ` + number + `); `
}

// payAll is a payment of all that is due of the finalized invoice.
const payAll = `INSERT INTO payments (invoice_id, n, customer_id, kind, amount_minor, at) SELECT id, 1, customer_id, 'payment', amount_due_minor, 1 FROM invoices WHERE id = FINAL; `

// aKind is one more invoice of the same kind and period as another.
func aKind(of string) string {
	return `INSERT INTO invoices (id, customer_id, kind, status, currency, chain, n, period_start, period_end, plan_id, price_version, made_at, finalize_at)
		SELECT gen_random_uuid(), customer_id, kind, 'draft', currency, chain, n, period_start, period_end, plan_id, price_version, 0, 0 FROM invoices WHERE id = ` + of
}

type refusal struct{ name, sql, by string }

// refusals are statements that the database must refuse, with the constraint or a part of the
// trigger's message. ok: what it must let pass, or the others might fail for another reason.
var refusals = []refusal{
	{"the period that follows", period("0", "2", "l.end_at", "l.end_at + "+day, "l.end_at"), ok},
	{"a chain that begins later", period("1", "0", "l.end_at + "+day, "l.end_at + 2*"+day, "l.end_at"), ok},
	{"a period that begins too late", period("0", "2", "l.end_at + 1", "l.end_at + "+day, "l.end_at"), "periods_follow_in_chain"},
	{"a period that begins too early", period("0", "2", "l.end_at - 1", "l.end_at + "+day, "l.end_at - 1"), "periods_follow"},
	{"a period whose number skips one", period("0", "3", "l.end_at", "l.end_at + "+day, "l.end_at"), "periods_follow_in_chain"},
	{"a period twice", period("0", "1", "l.end_at", "l.end_at + "+day, "l.end_at"), "periods_pkey"},
	{"a period before the first", period("1", "0", "l.start_at - 40*"+day, "l.start_at - 39*"+day, "NULL"), "periods_one_after_another"},
	{"a chain with no period before", period("1", "0", "l.end_at", "l.end_at + "+day, "NULL"), "periods_one_after_another"},
	{"a chain that begins within a period", period("1", "0", "l.start_at + "+day, "l.end_at + "+day, "l.end_at"), "periods_apart"},
	{"a chain that begins beside another period", period("1", "0", "l.start_at + "+day, "l.end_at + "+day, "l.start_at"), "periods_one_after_another"},
	{"a chain behind a period that is not there", period("1", "0", "l.end_at + "+day, "l.end_at + 2*"+day, "l.end_at + 1"), "periods_follow"},
	{"an empty period", period("0", "2", "l.end_at", "l.end_at", "l.end_at"), "periods_check"},
	{"a closed period is changed", `UPDATE periods SET version = version WHERE customer_id = ACME`, "closed billing period"},
	{"a closed period is deleted", `DELETE FROM periods WHERE customer_id = ACME AND n = 1`, "closed billing period"},
	{"all periods are deleted", `TRUNCATE periods CASCADE`, "cannot be emptied"},

	{"a second invoice behind a void one", `DELETE FROM invoice_lines WHERE invoice_id = DRAFT; DELETE FROM invoices WHERE id = DRAFT; ` + aKind("VOID"), ok},
	{"a second invoice beside a finalized one", aKind("FINAL"), "invoices_one_of_a_kind"},
	{"a second invoice beside a paid one", aKind("PAID"), "invoices_one_of_a_kind"},
	{"a second invoice beside a credited one", aKind("CREDITED"), "invoices_one_of_a_kind"},
	{"a second invoice beside a draft", aKind("VOID"), "invoices_one_of_a_kind"},
	{"a draft becomes one of another period", `UPDATE invoices SET n = 1 WHERE id = DRAFT`, "invoices_one_of_a_kind"},
	{"an invoice becomes valid again", `UPDATE invoices SET status = 'finalized' WHERE id = VOID`, "cannot become"},

	{"the next number", aNumber("'default'", "(SELECT max(number) + 1 FROM invoices)"), ok},
	{"a number skips one", aNumber("'default'", "(SELECT max(number) + 2 FROM invoices)"), "invoices_number_without_gap"},
	{"a number twice", aNumber("'default'", "1"), "invoices_number_once"},
	{"a number 0", aNumber("'default'", "0"), "invoices_number_without_gap"},
	{"a number of no seller", aNumber("NULL", "7"), "invoices_numbered_whole"},
	{"another seller's series begins with 2", aNumber("'other'", "2"), "invoices_number_without_gap"},
	{"another series begins with 2", strings.Replace(aNumber("'default'", "2"), "'test'", "'live'", 1), "invoices_number_without_gap"},
	{"another series begins with 1", strings.Replace(aNumber("'default'", "1"), "'test'", "'live'", 1), ok},
	{"another prefix begins with 2", strings.Replace(aNumber("'default'", "2"), "'TEST-'", "'TEST-Q'", 1), "invoices_number_without_gap"},
	{"another prefix begins with 1", strings.Replace(aNumber("'default'", "1"), "'TEST-'", "'TEST-Q'", 1), ok},
	{"a number that the series is told to go on with", goOn("TEST-", "90") + aNumber("'default'", "90"), ok},
	{"a number that another series is told to go on with", goOn("TEST-Q", "90") + aNumber("'default'", "90"), "invoices_number_without_gap"},
	{"a series that is told to go on where it is", goOn("TEST-", "1"), "seller_skips_number_check"},
	{"a series of notes is set back", `INSERT INTO seller_numbers VALUES ('default', 'live', 'C-', 0)`, "seller_numbers_next_number_check"},
	{"an unknown series", strings.Replace(aNumber("'default'", "1"), "'test'", "'notes'", 1), "invoices_series_known"},
	{"a finalized invoice changes its series", `UPDATE invoices SET series = 'live' WHERE id = FINAL`, "cannot be changed"},
	{"a finalized invoice changes its clock", `UPDATE invoices SET clock_id = NULL WHERE id = FINAL`, "cannot be changed"},
	{"a number of a draft", `UPDATE invoices SET number = 7 WHERE id = DRAFT`, "invoices_draft_without_number"},
	{"a finalized invoice without a number", `UPDATE invoices SET status = 'finalized' WHERE id = DRAFT`, "invoices_draft_without_number"},
	{"the series is set back", `UPDATE sellers SET next_number = 0 WHERE key = 'default'`, "sellers_next_number_check"},
	{"the series of test clocks is set back", `UPDATE sellers SET next_test_number = 0 WHERE key = 'default'`, "sellers_next_test_number_check"},
	{"the seller is deleted", `DELETE FROM sellers WHERE key = 'default'`, "_seller_fkey"},

	{"a finalized invoice's total", `UPDATE invoices SET total_minor = 1 WHERE id = FINAL`, "cannot be changed"},
	{"a paid invoice's taxes", `UPDATE invoices SET document = jsonb_set(document, '{taxes}', '[]') || '{"x":1}' WHERE id = PAID`, "cannot be changed"},
	{"a total beside the next status", payAll + `UPDATE invoices SET status = 'paid', total_minor = 1 WHERE id = FINAL`, "cannot be changed"},
	{"a number beside the next status", payAll + `UPDATE invoices SET status = 'paid', number = number + 100 WHERE id = FINAL`, "cannot be changed"},
	{"a void invoice's reason", `UPDATE invoices SET void_reason = 'other' WHERE id = VOID`, "cannot be changed"},
	{"a credit note's amount", `UPDATE invoices SET subtotal_minor = 0 WHERE id = NOTE`, "cannot be changed"},
	{"a finalized invoice is deleted", `DELETE FROM invoices WHERE id = FINAL`, "cannot be deleted"},
	{"a void invoice is deleted", `DELETE FROM invoices WHERE id = VOID`, "cannot be deleted"},
	{"all invoices are deleted", `TRUNCATE invoices CASCADE`, "cannot be emptied"},
	{"a finalized invoice's lines", `UPDATE invoice_lines SET amount_minor = 1 WHERE invoice_id = FINAL`, "lines cannot be changed"},
	{"the price of a finalized invoice's line", `UPDATE invoice_lines SET unit_price = '2' WHERE invoice_id = FINAL`, "lines cannot be changed"},
	{"a void invoice's lines", `UPDATE invoice_lines SET amount_minor = 1 WHERE invoice_id = VOID`, "lines cannot be changed"},
	{"a finalized invoice's lines are deleted", `DELETE FROM invoice_lines WHERE invoice_id = FINAL`, "lines cannot be changed"},
	{"all lines are deleted", `TRUNCATE invoice_lines CASCADE`, "cannot be emptied"},
	{
		"a line is added to a finalized invoice",
		`INSERT INTO invoice_lines (invoice_id, n, kind, description, from_at, to_at, quantity, included, plan_version, tiers, amount_minor)
			SELECT FINAL, 99 + n, kind, description, from_at, to_at, quantity, included, plan_version, tiers, amount_minor FROM invoice_lines WHERE invoice_id = DRAFT`,
		"lines cannot be changed",
	},
	{"a draft's line moves to a finalized invoice", `UPDATE invoice_lines SET invoice_id = FINAL, n = n + 50 WHERE invoice_id = DRAFT`, "lines cannot be changed"},
	{"a finalized invoice's line moves to a draft", `UPDATE invoice_lines SET invoice_id = DRAFT, n = n + 50 WHERE invoice_id = FINAL`, "lines cannot be changed"},
	{
		"an adjustment comes to a finalized invoice", `INSERT INTO line_adjustments VALUES (FINAL, ACME, 1, 0, gen_random_uuid(), 1, 0, '')`,
		"lines cannot be changed",
	},
	{"all adjustments' places are deleted", `TRUNCATE line_adjustments`, "cannot be emptied"},

	{"a finalized invoice is paid", payAll + `UPDATE invoices SET status = 'paid' WHERE id = FINAL`, ok},
	{"a finalized invoice is paid, and something is open", strings.Replace(payAll, "amount_due_minor,", "amount_due_minor - 1,", 1) +
		`UPDATE invoices SET status = 'paid' WHERE id = FINAL`, "cannot become"},
	{"a finalized invoice is paid by nothing", `UPDATE invoices SET status = 'paid' WHERE id = FINAL`, "cannot become"},
	{"a finalized invoice becomes void", `UPDATE invoices SET status = 'void', void_reason = 'x' WHERE id = FINAL`, ok},
	{"a finalized invoice is credited", payAll + `UPDATE invoices SET status = 'credited' WHERE id = FINAL`, ok},
	{"a finalized invoice is credited, and something is open", `UPDATE invoices SET status = 'credited' WHERE id = FINAL`, "cannot become"},
	{"a paid invoice is credited", `UPDATE invoices SET status = 'credited' WHERE id = PAID`, ok},
	{"an invoice that begins paid", strings.Replace(aKind("VOID"), "'draft'", "'paid'", 1), "begins as a draft"},
}

// jumps are the next statuses that no invoice may take, by the one it has.
var jumps = map[string][]string{
	"DRAFT": {"void", "credited"}, "FINAL": {"draft"}, "PAID": {"draft", "finalized", "void"},
	"VOID": {"draft", "finalized", "paid", "credited"}, "CREDITED": {"draft", "finalized", "paid", "void"}, "NOTE": {"draft", "finalized", "void"},
}

const ok = ""

// TestTheDatabaseRefuses tries by raw SQL what must not be. Each statement is rolled back.
func TestTheDatabaseRefuses(t *testing.T) {
	w := newWorld(t)
	words, tried := w.oneOfEach(), slices.Clone(refusals)
	for of, all := range jumps {
		for _, status := range all {
			tried = append(tried, refusal{of + " becomes " + status, `UPDATE invoices SET status = '` + status + `' WHERE id = ` + of, "cannot become"})
		}
	}
	for _, c := range tried {
		tx, err := w.store.Pool().Begin(w.Context())
		w.check(err)
		_, err = tx.Exec(w.Context(), words.Replace(c.sql))
		refused, _ := errors.AsType[*pgconn.PgError](err)
		switch {
		case c.by == ok && err != nil, c.by != ok && refused == nil:
			t.Errorf("%s: %v, want %q", c.name, err, c.by)
		case c.by != ok && !strings.Contains(refused.ConstraintName+" "+refused.Message, c.by):
			t.Errorf("%s: refused by %q %q, want %q", c.name, refused.ConstraintName, refused.Message, c.by)
		}
		w.check(tx.Rollback(w.Context()))
	}
}

// oneOfEach makes invoices of every status, and says their names in statements: acme has a paid
// and a finalized one, beta a void one with its reissue, and a credited one with its note.
func (w *world) oneOfEach() *strings.Replacer {
	w.Helper()
	planstest.Declare(w, w.store, "api")
	w.plan("pro", 2000, `[{"meter":"api","model":"per_unit","unit_price":"0.01"}]`)
	planstest.SetClock(w, w.store, "clock", "2026-01-01T00:00:00Z")
	acme, beta := w.customer("acme", "pro"), w.customer("beta", "pro")
	w.hit("acme", "api", 7)
	w.clock("2026-03-01T02:00:00Z")
	a, b := w.stored(acme), w.stored(beta)
	_, err := w.invoices.Pay(w.Context(), a[0].ID, 0, "bank", invoices.Once{})
	w.check(err)
	_, err = w.invoices.Void(w.Context(), b[0].ID, "wrong", true)
	w.check(err)
	note, _, err := w.invoices.CreditNote(w.Context(), b[1].ID, assembly.NoteRequest{
		Lines: []assembly.NoteLine{{N: 1, AmountMinor: 2000}}, Reason: "gift", To: assembly.Outside,
	}, "note", 1)
	w.check(err)
	_, err = w.store.Pool().Exec(w.Context(), `INSERT INTO sellers (key, name, change) VALUES ('other', '', 0)`)
	w.check(err)
	var draft string
	for _, i := range w.stored(beta) {
		if i.Status == billing.StatusDraft {
			draft = i.ID
		}
	}
	quoted := func(id string) string { return "'" + id + "'" }
	return strings.NewReplacer("ACME", "(SELECT id FROM customers WHERE key = 'acme')", "PAID", quoted(a[0].ID), "FINAL", quoted(a[1].ID),
		"VOID", quoted(b[0].ID), "CREDITED", quoted(b[1].ID), "NOTE", quoted(note.ID), "DRAFT", quoted(draft))
}

// TestALineWaitsForWhoFinalizes: an invoice is being finalized while a line is added to it. The
// line waits, and is refused then.
func TestALineWaitsForWhoFinalizes(t *testing.T) {
	w := newWorld(t)
	words, ctx := w.oneOfEach(), w.Context()
	tx, err := w.store.Pool().Begin(ctx)
	w.check(err)
	_, err = tx.Exec(ctx, words.Replace(aNumber("'default'", "(SELECT max(number) + 1 FROM invoices)")))
	w.check(err)
	added := make(chan error, 1)
	go func() {
		_, err := w.store.Pool().Exec(ctx, words.Replace(
			`INSERT INTO invoice_lines (invoice_id, n, kind, description, from_at, to_at, quantity, included, plan_version, tiers, amount_minor)
			VALUES (DRAFT, 99, 'charge', '', 0, 0, 0, 0, 1, '[]', 1)`))
		added <- err
	}()
	testkit.Eventually(t, "the line waits", func() bool {
		return pgtest.Query[bool](t, w.url, `SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND locktype = 'transactionid')`)
	})
	w.check(tx.Commit(ctx))
	if err := <-added; err == nil || !strings.Contains(err.Error(), "lines cannot be changed") {
		t.Errorf("told %v", err)
	}
}
