package store

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"

	"github.com/jackc/pgx/v5"

	"quotad/internal/plans"
)

// tokenBytes is the length of a link's secret, which is 256 random bits.
const tokenBytes = 32

// linkedCustomer prevents the erasure or removal of the customer until the link is stored. The link then
// ends with its customer.
const linkedCustomer = `SELECT id FROM customers WHERE key = $1 AND archived_at IS NULL FOR KEY SHARE`

const insertLink = `
	INSERT INTO portal_links (token, path, return_url, embed_origin, theme, expires_at, customer_id, key_id)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`

// CreatePortalLink creates a link and returns its token, which is not stored. The link can be used until
// expires, µs, while its customer exists and the key with the id keyID is valid. The error for an unknown
// or archived customer is plans.ErrUnknownCustomer.
func (s *Store) CreatePortalLink(ctx context.Context, l plans.PortalLink, expires int64, keyID string) (token string, err error) {
	if !plans.ValidCustomerKey(l.Customer) {
		return "", plans.ErrUnknownCustomer
	}
	raw := make([]byte, tokenBytes)
	_, _ = rand.Read(raw) // never fails: the program would end instead
	token = base64.RawURLEncoding.EncodeToString(raw)
	ctx, cancel := context.WithTimeout(ctx, s.Within())
	defer cancel()
	err = transact(ctx, s.pool, func(tx pgx.Tx) error {
		id, err := one(ctx, tx, plans.ErrUnknownCustomer, pgx.RowTo[int64], linkedCustomer, l.Customer)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, insertLink, hashOf(token), l.Path, l.ReturnURL, l.EmbedOrigin, l.Theme, expires, id, keyID); err != nil {
			return err
		}
		return Audit(ctx, tx, plans.Audited{
			Action: plans.AuditCreate, Target: "customers/" + l.Customer + "/portal-sessions", Customer: id, After: map[string]string{"path": l.Path},
		})
	})
	return token, err
}

const linkOpens = lives + `AND s.spent_at IS NULL `

const lookAtLink = `
	SELECT c.key, s.path, s.return_url, s.embed_origin, s.theme FROM portal_links s JOIN customers c ON c.id = s.customer_id
	WHERE s.token = $1 AND` + linkOpens

// PortalLink returns the properties of a link at now, µs, without using up the link. The error is
// plans.ErrLinkOver if the link was used, has ended, or never existed.
func (s *Store) PortalLink(ctx context.Context, token string, now int64) (plans.PortalLink, error) {
	return read(ctx, s, plans.ErrLinkOver, pgx.RowToStructByPos[plans.PortalLink], lookAtLink, hashOf(token), now)
}

// linkSpent contains the customer of a used link and the key that created the link.
type linkSpent struct {
	Customer int64
	Key      string
}

// enteringCustomer locks the customer before the link, in the same order as erasing and forgetting do.
const enteringCustomer = `
	SELECT c.id FROM customers c WHERE c.id = (SELECT customer_id FROM portal_links WHERE token = $1) FOR KEY SHARE`

const spendLink = `UPDATE portal_links s SET spent_at = $2 WHERE s.token = $1 AND` + linkOpens + `RETURNING customer_id, key_id`

// EnterPortal uses up a link at now, µs, and creates the session that the link opens, in one transaction.
// The session ends at expires, µs. If several callers use the link at once, one caller gets the session
// and the other callers get plans.ErrLinkOver.
func (s *Store) EnterPortal(ctx context.Context, link string, now int64, token string, data []byte, expires int64) error {
	ctx, cancel := context.WithTimeout(ctx, s.Within())
	defer cancel()
	return transact(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := one(ctx, tx, plans.ErrLinkOver, pgx.RowTo[int64], enteringCustomer, hashOf(link)); err != nil {
			return err
		}
		spent, err := one(ctx, tx, plans.ErrLinkOver, pgx.RowToStructByPos[linkSpent], spendLink, hashOf(link), now)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, insertSession, hashOf(token), data, expires, spent.Customer, spent.Key)
		return err
	})
}

const endSessionsOf = `
	WITH links AS (DELETE FROM portal_links WHERE customer_id = $1)
	DELETE FROM sessions WHERE customer_id = $1`

const endSessionsOfKey = `
	WITH links AS (DELETE FROM portal_links WHERE key_id = $1)
	DELETE FROM sessions WHERE key_id = $1`

func hashOf(token string) []byte {
	hash := sha256.Sum256([]byte(token))
	return hash[:]
}
