package postgres_test

import (
	"testing"

	"quotad/internal/testkit/pgtest"
)

const endsMigration = "00026_ends.sql"

// anAccount is what the version before writes.
func anAccount(customer string) []string {
	return []string{
		`INSERT INTO customers (key, name, plan_id, joined_version, timezone, billing_anchor, change)
			VALUES ('` + customer + `', '', (SELECT id FROM plans), 1, 'UTC', '', 1)`,
		`INSERT INTO billing_accounts (customer_id, starts_at, starts_set_at, ends_at, change)
			SELECT id, 0, 0, 1, 1 FROM customers WHERE key = '` + customer + `'`,
	}
}

// Accounts that were there go on after their end as before, and later ones do not, also those that a
// node of the version before makes.
func TestAccountsFromBeforeAreFreeAfterTheirEnd(t *testing.T) {
	databaseURL := emptyDatabase(t)
	toVersion(t, databaseURL, "00024_z", false)
	pgtest.Exec(t, databaseURL, append([]string{`INSERT INTO plans (key, latest_version) VALUES ('pro', 1)`}, anAccount("before")...)...)
	for range 2 {
		toVersion(t, databaseURL, endsMigration, false)
		pgtest.Exec(t, databaseURL, anAccount("after")...)
		const shown = `SELECT string_agg(c.key || ' ' || a.after_end || ' ' || (c.suspended_at IS NULL) || c.suspended_reason, ', ' ORDER BY c.id)
			FROM billing_accounts a JOIN customers c ON c.id = a.customer_id`
		if got := pgtest.Query[string](t, databaseURL, shown); got != "before free true, after block true" {
			t.Error(got)
		}
		pgtest.Exec(t, databaseURL, `DELETE FROM customers WHERE key = 'after'`)
		toVersion(t, databaseURL, endsMigration, true)
	}
}
