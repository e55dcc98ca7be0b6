package postgres_test

import (
	"strconv"
	"strings"
	"testing"

	"quotad/internal/postgres"
	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
)

const beforePayments, payments = "00029_scheduled_changes.sql", "00030_payments.sql"

// paidBefore is an invoice of 1000, finalized at 5, of which the version before noted what set says.
// number is its number, and those of its notes follow it. notes are {made at, amount}.
func paidBefore(number int, set string, notes ...[2]int) (all []string) {
	draft := func(kind, of string, n, made int) {
		all = append(all, strings.NewReplacer("KIND", kind, "OF", of, "NUMBER", strconv.Itoa(n), "MADE", strconv.Itoa(made)).Replace(
			`INSERT INTO invoices (id, customer_id, kind, status, currency, chain, n, period_start, period_end, plan_id, price_version, made_at, finalize_at, "of")
			SELECT ('00000000-0000-4000-8000-' || lpad('NUMBER', 12, '0'))::uuid, id, 'KIND', 'draft', 'USD', 0, NUMBER, 0, 1, 1, 1, MADE, 0, OF FROM customers`))
	}
	final := func(n int, status, set string) {
		all = append(all, strings.NewReplacer("STATUS", status, "NUMBER", strconv.Itoa(n), "REST", set).Replace(
			`UPDATE invoices SET status = 'STATUS', seller = 'default', number = NUMBER, prefix = '', finalized_at = 5, due_at = 20, digest = '\x00', REST WHERE n = NUMBER`))
	}
	draft("period", "NULL", number, 1)
	final(number, "finalized", "total_minor = 1000, amount_due_minor = 1000")
	for k, note := range notes {
		draft("credit_note", "(SELECT id FROM invoices WHERE number = "+strconv.Itoa(number)+")", number+1+k, note[0])
		final(number+1+k, "paid", "total_minor = -"+strconv.Itoa(note[1]))
	}
	if set != "" {
		all = append(all, "UPDATE invoices SET "+set+" WHERE number = "+strconv.Itoa(number))
	}
	return all
}

const shownPayments = `
	SELECT coalesce(string_agg(concat_ws(' ', i.number, i.status, p.paid, m.open, u.told), ', ' ORDER BY i.number), '') FROM invoices i
	LEFT JOIN LATERAL (SELECT string_agg(concat_ws('/', n, kind, amount_minor, reference, at), '+') AS paid FROM payments WHERE invoice_id = i.id) p ON true
	LEFT JOIN LATERAL (SELECT 'notes ' || string_agg(concat_ws('/', open_minor, carried_minor, outside_minor, returned_minor), '+' ORDER BY note_id) AS open FROM note_money WHERE invoice_id = i.id) m ON true
	LEFT JOIN LATERAL (SELECT 'due ' || due_at || CASE WHEN told_at IS NULL THEN '' ELSE ' told' END AS told FROM unpaid_invoices WHERE invoice_id = i.id) u ON true
	WHERE i.kind <> 'credit_note'`

// What was paid before gets its payment, when that is known at its instant. Notes took what was open
// until then. What is overdue is told already.
func TestPaymentsOfBefore(t *testing.T) {
	ctx, databaseURL := testkit.Context(t), emptyDatabase(t)
	if _, err := postgres.Migrate(ctx, databaseURL, schemaTo(t, beforePayments), quietly); err != nil {
		t.Fatal(err)
	}
	pgtest.Exec(t, databaseURL,
		`INSERT INTO plans (key, latest_version) VALUES ('pro', 1)`,
		`INSERT INTO customers (key, name, plan_id, joined_version, timezone, billing_anchor, change) SELECT 'a', 'a', id, 1, 'UTC', '', 1 FROM plans`)
	for _, all := range [][]string{
		paidBefore(1, `status = 'paid', reference = 'bank', paid_at = 9, paid_minor = 1000`),
		paidBefore(2, `status = 'paid', reference = 'bank', paid_at = 9, paid_minor = 700`, [2]int{8, 300}, [2]int{12, 200}),
		paidBefore(5, `status = 'paid'`, [2]int{8, 300}),
		paidBefore(7, `status = 'paid'`),
		paidBefore(8, `status = 'credited'`, [2]int{8, 1000}),
		paidBefore(10, ``, [2]int{8, 300}),
		paidBefore(12, ``, [2]int{8, 700}, [2]int{9, 300}),
		paidBefore(15, `status = 'void'`),
		paidBefore(16, ``),
		paidBefore(17, `status = 'credited'`, [2]int{8, 400}, [2]int{9, 600}),
		{`UPDATE sellers SET next_number = 20`},
	} {
		pgtest.Exec(t, databaseURL, all...)
	}
	// The note of the last one became a credit, so the invoice was paid before.
	pgtest.Exec(t, databaseURL,
		`INSERT INTO credits (customer_id, id, kind, amount_minor, left_minor, currency, priority, at, payload)
			SELECT customer_id, 'carried:' || id, 'carried', 600, 600, 'USD', 50, 9, 0 FROM invoices WHERE number = 19`,
		`INSERT INTO audit (at, actor, request, action, subject, target) SELECT to_timestamp(0.00001), 'k', 'r', 'pay', 'invoices/' || id, 'invoices/' || id FROM invoices WHERE number = 5`)
	const want = "1 paid 1/payment/1000/bank/9, 2 paid 1/payment/700/bank/9 notes 300/0/0/0+0/0/200/0, 5 paid 1/payment/700/10 notes 300/0/0/0, " +
		"7 paid 1/payment/1000/5, 8 credited notes 1000/0/0/0, 10 finalized notes 300/0/0/0 due 20 told, 12 paid notes 700/0/0/0+300/0/0/0, " +
		"15 void, 16 finalized due 20 told, 17 credited 1/payment/1000/5 notes 0/0/400/0+0/600/0/0"
	for _, what := range []string{"up", "up again"} {
		if _, err := postgres.Migrate(ctx, databaseURL, schemaTo(t, payments), quietly); err != nil {
			t.Fatal(err)
		}
		if got := pgtest.Query[string](t, databaseURL, shownPayments); got != want {
			t.Errorf("%s:\n%s, want\n%s", what, got, want)
		}
		if what == "up" {
			if _, err := postgres.MigrateDown(ctx, databaseURL, schemaTo(t, payments), quietly); err != nil {
				t.Fatal(err)
			}
		}
	}
	// The version before goes on beside: it pays what is open, notes what it sees as due, and voids what
	// nobody paid.
	pgtest.Exec(t, databaseURL, paidBefore(20, `status = 'paid', paid_at = 30, paid_minor = 600`, [2]int{25, 400})...)
	pgtest.Exec(t, databaseURL, paidBefore(22, ``, [2]int{25, 1000})...)
	pgtest.Exec(t, databaseURL, paidBefore(24, `status = 'void'`)...)
	const also = ", 20 paid 1/payment/600/30 notes 400/0/0/0, 22 paid notes 1000/0/0/0, 24 void"
	if got := pgtest.Query[string](t, databaseURL, shownPayments); got != want+also {
		t.Errorf("beside:\n%s, want\n%s", got, want+also)
	}
}
