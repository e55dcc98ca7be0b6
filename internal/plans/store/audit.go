package store

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"quotad/internal/plans"
)

// errUnaudited fails a Write of an actor that recorded no audit entry, so that no change lacks its entry.
var errUnaudited = errors.New("a change that is not audited")

// execer is the pool or an open transaction.
type execer interface {
	Exec(ctx context.Context, statement string, args ...any) (pgconn.CommandTag, error)
}

const insertAudit = `
	INSERT INTO audit (actor, request, action, subject, target, customer, scrubbed, before, after)
	VALUES ($1, $2, $3, $4, $5, nullif($6::bigint, 0), $7, $8, $9)`

// Audit records a change in the audit trail, in the transaction of the change. Audit writes nothing if
// quotad itself makes the change.
func Audit(ctx context.Context, tx execer, a plans.Audited) error {
	actor, acts := plans.ActorOf(ctx)
	if !acts {
		return nil
	}
	before, after, err := a.Documents()
	if err != nil {
		return fmt.Errorf("audit %s: %w", a.Target, err)
	}
	_, err = tx.Exec(ctx, insertAudit, actor.By, actor.Request, a.Action, plans.Subject(a.Target), a.Target, a.Customer, a.Scrubbed, before, after)
	return err
}

// Audit records the change of a Write in the audit trail. Each Write of an actor must call it.
func (w *Writing) Audit(ctx context.Context, a plans.Audited) error {
	w.audited = true
	return Audit(ctx, w.Tx, a)
}

// Record audits a change that was made outside of this package's transactions, such as an import.
func (s *Store) Record(ctx context.Context, a plans.Audited) error {
	ctx, cancel := context.WithTimeout(ctx, s.Within())
	defer cancel()
	return Classify(Audit(ctx, s.pool, a))
}

// auditKinds lists the first path segments of targets that have a key.
var auditKinds = []string{"customers", "invoices", "keys", "meters", "plans", "sellers", "settings", "test-clocks", "webhooks"}

const (
	auditColumns = `
	SELECT a.id, a.at, a.actor, coalesce(k.name, ''), a.action, a.target, a.before, a.after, a.request
	FROM audit a LEFT JOIN keys k ON k.id = a.actor WHERE true`
	auditOrder = ` ORDER BY a.at DESC, a.id DESC LIMIT `
)

// auditQuery returns the statement and arguments of a filter. The statement contains only the conditions
// that the filter sets, so that PostgreSQL can use the index of each condition.
func auditQuery(f plans.AuditFilter, after auditAt, rows int) (statement string, args []any) {
	var where strings.Builder
	arg := func(value any) string {
		args = append(args, value)
		return "$" + strconv.Itoa(len(args))
	}
	if f.Actor != "" {
		where.WriteString(` AND a.actor = ` + arg(f.Actor))
	}
	if f.Target != "" {
		subjects := []string{plans.Subject(f.Target)}
		if !strings.Contains(f.Target, "/") {
			for _, kind := range auditKinds {
				subjects = append(subjects, kind+"/"+f.Target)
			}
		}
		if len(subjects) == 1 {
			where.WriteString(` AND a.subject = ` + arg(subjects[0]))
		} else {
			where.WriteString(` AND a.subject = ANY (` + arg(subjects) + `)`)
		}
		if strings.Count(f.Target, "/") > 1 {
			below := arg(f.Target)
			where.WriteString(` AND (a.target = ` + below + ` OR starts_with(a.target, ` + below + ` || '/'))`)
		}
	}
	if f.From != nil {
		where.WriteString(` AND a.at >= ` + arg(time.UnixMicro(*f.From)))
	}
	if f.To != nil {
		where.WriteString(` AND a.at < ` + arg(time.UnixMicro(*f.To)))
	}
	if after.id > 0 {
		where.WriteString(` AND (a.at, a.id) < (` + arg(time.UnixMicro(after.at)) + `, ` + arg(after.id) + `)`)
	}
	return auditColumns + where.String() + auditOrder + arg(rows), args
}

// auditAt is a position in the list of entries: the instant of an entry, µs, and its id.
type auditAt struct{ at, id int64 }

func (p auditAt) String() string {
	return strconv.FormatInt(p.at, 10) + "." + strconv.FormatInt(p.id, 10)
}

func readAuditAt(text string) (p auditAt, ok bool) {
	at, id, _ := strings.Cut(text, ".")
	var badAt, badID error
	p.at, badAt = strconv.ParseInt(at, 10, 64)
	p.id, badID = strconv.ParseInt(id, 10, 64)
	return p, badAt == nil && badID == nil && p.id > 0 && p.String() == text
}

const kindAudit = "audit"

// auditBytes limits the total size of the documents on one page, in bytes. Each entry has at most two
// documents of 8 KiB, so a page always has some entries.
const auditBytes = 1 << 20

// AuditEntries returns the changes that actors made, the newest first. A page ends before its limit if
// its documents would exceed auditBytes. The error for an invalid page is a model.FieldErrors.
func (s *Store) AuditEntries(ctx context.Context, f plans.AuditFilter, page plans.Page) (*plans.List[plans.AuditEntry], error) {
	limit, position, err := OpenPage(page, kindAudit, func(text string) bool {
		_, ok := readAuditAt(text)
		return ok
	})
	if err != nil {
		return nil, err
	}
	after, _ := readAuditAt(position)
	ctx, cancel := context.WithTimeout(ctx, s.Within())
	defer cancel()
	statement, args := auditQuery(f, after, limit+1)
	rows, _ := s.pool.Query(ctx, statement, args...) // rows.Err reports an error
	defer rows.Close()
	var found []plans.AuditEntry
	for size := 0; size <= auditBytes && rows.Next(); {
		e, err := scanAudit(rows)
		if err != nil {
			return nil, Classify(err)
		}
		found = append(found, e)
		if size += len(e.Before) + len(e.After); size > auditBytes {
			limit = min(limit, len(found)-1) // this entry begins the next page
		}
	}
	if err := rows.Err(); err != nil {
		return nil, Classify(err)
	}
	return Paged(found, limit, kindAudit, func(e plans.AuditEntry) string { return auditAt{e.At.UnixMicro(), e.ID}.String() }), nil
}

func scanAudit(row pgx.CollectableRow) (e plans.AuditEntry, err error) {
	err = row.Scan(&e.ID, &e.At, &e.Actor, &e.ActorName, &e.Action, &e.Target, &e.Before, &e.After, &e.Request)
	e.At = e.At.UTC()
	return e, err
}

// ScrubRows is the greatest number of entries that one transaction scrubs.
const ScrubRows = 1000

// scrubAudit keeps the fact that a change was made, and removes the data of an erased customer. In the
// path of a target, the third segment is the kind of the object and the rest is its name, so only the
// third segment is kept.
const scrubAudit = `
	UPDATE audit a SET before = NULL, after = NULL, scrubbed = true,
		subject = CASE WHEN a.subject LIKE 'customers/%' THEN 'customers/' || $2::text ELSE a.subject END,
		target = CASE WHEN a.subject LIKE 'customers/%'
			THEN rtrim('customers/' || $2::text || '/' || split_part(a.target, '/', 3), '/') ELSE a.target END
	WHERE (a.at, a.id) IN (SELECT at, id FROM audit WHERE customer = $1 AND NOT scrubbed ORDER BY id LIMIT $3)`

// ScrubAudit removes an erased customer's data from at most ScrubRows entries of the audit trail. more is
// true if there may be further entries to scrub.
func ScrubAudit(ctx context.Context, tx execer, customer int64) (more bool, err error) {
	done, err := tx.Exec(ctx, scrubAudit, customer, erasedKey(customer), ScrubRows)
	return done.RowsAffected() == ScrubRows, err
}

// erasedKey returns the key of an erased customer.
func erasedKey(id int64) string { return plans.ErasedPrefix + strconv.FormatInt(id, 10) }
