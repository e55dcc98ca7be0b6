package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// Room is the number of sessions that the server allows, including sessions in use.
type Room struct {
	Sessions int    // the lowest of all bounds
	By       string // the bound as text: "max_connections is 100, of which 3 are reserved"
}

// roomSQL finds the lowest bound. A superuser may use the reserved sessions and is exempt from the connection
// limits of role and database.
const roomSQL = `
	SELECT sessions, bound FROM pg_roles r, pg_database d, LATERAL (
		SELECT current_setting('max_connections')::integer AS most, CASE WHEN r.rolsuper THEN 0 ELSE
			current_setting('superuser_reserved_connections')::integer + CASE WHEN EXISTS (
				SELECT FROM pg_roles p WHERE p.rolname = 'pg_use_reserved_connections' AND pg_has_role(r.oid, p.oid, 'USAGE'))
			THEN 0 ELSE coalesce(current_setting('reserved_connections', true), '0')::integer END END AS reserved) s, LATERAL (
		VALUES (s.most - s.reserved, format('max_connections is %s, of which %s are reserved', s.most, s.reserved)),
			(r.rolconnlimit, format('the role %I has CONNECTION LIMIT %s', r.rolname, r.rolconnlimit)),
			(d.datconnlimit, format('the database %I has CONNECTION LIMIT %s', d.datname, d.datconnlimit))) b (sessions, bound)
	WHERE r.rolname = session_user AND d.datname = current_database()
		AND sessions >= 0 AND (NOT r.rolsuper OR bound LIKE 'max_connections%')
	ORDER BY sessions LIMIT 1`

// RoomFor returns the number of sessions that the server allows for the connection's role and database.
func RoomFor(ctx context.Context, conn *pgx.Conn) (r Room, err error) {
	err = conn.QueryRow(ctx, roomSQL).Scan(&r.Sessions, &r.By)
	return r, err
}
