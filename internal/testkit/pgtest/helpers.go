package pgtest

import (
	"context"
	"net/url"
	"strconv"
	"testing"

	"quotad/internal/postgres"
	"quotad/internal/testkit"
)

// Patiently is a URL whose server may be as slow to connect with as a test is patient. A
// connect_timeout that it has stays.
func Patiently(databaseURL string) string {
	u, err := url.Parse(databaseURL)
	if err != nil || u.Scheme == "" || u.Query().Has("connect_timeout") { // key=value words are left alone
		return databaseURL
	}
	q := u.Query()
	q.Set("connect_timeout", strconv.Itoa(int(testkit.Patience.Seconds())))
	u.RawQuery = q.Encode()
	return u.String()
}

// Query returns one value of one statement, on a connection of its own.
func Query[T any](t testing.TB, databaseURL, sql string, args ...any) T {
	t.Helper()
	value, err := TryQuery[T](testkit.Context(t), databaseURL, sql, args...)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return value
}

// TryQuery is Query for a statement that may fail.
func TryQuery[T any](ctx context.Context, databaseURL, sql string, args ...any) (value T, err error) {
	conn, err := postgres.Connect(ctx, Patiently(databaseURL), nil)
	if err != nil {
		return value, err
	}
	defer conn.Close(ctx)
	err = conn.QueryRow(ctx, sql, args...).Scan(&value)
	return value, err
}

// Exec runs statements on a connection of its own.
func Exec(t testing.TB, databaseURL string, statements ...string) {
	t.Helper()
	ctx := testkit.Context(t)
	conn, err := postgres.Connect(ctx, Patiently(databaseURL), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	for _, sql := range statements {
		if _, err := conn.Exec(ctx, sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}
