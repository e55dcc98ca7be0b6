package store

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"

	"github.com/jackc/pgx/v5"

	"quotad/internal/plans"
)

// tokenBytes is how long the secret of a link is: 256 random bits.
const tokenBytes = 32

const linkedCustomer = `SELECT id FROM customers WHERE key = $1 AND archived_at IS NULL`

const insertLink = `
	INSERT INTO portal_links (token, customer, path, return_url, embed_origin, theme, expires_at)
	VALUES ($1, $2, $3, $4, $5, $6, $7)`

// CreatePortalLink makes a link and returns its token, which is kept nowhere. The link can be
// used until expires, µs. plans.ErrUnknownCustomer also for an archived customer.
func (s *Store) CreatePortalLink(ctx context.Context, l plans.PortalLink, expires int64) (token string, err error) {
	if !plans.ValidCustomerKey(l.Customer) {
		return "", plans.ErrUnknownCustomer
	}
	raw := make([]byte, tokenBytes)
	_, _ = rand.Read(raw) // never fails; the program would have been ended
	token = base64.RawURLEncoding.EncodeToString(raw)
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		id, err := one(ctx, tx, plans.ErrUnknownCustomer, pgx.RowTo[int64], linkedCustomer, l.Customer)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, insertLink, hashOf(token), l.Customer, l.Path, l.ReturnURL, l.EmbedOrigin, l.Theme, expires); err != nil {
			return err
		}
		return Audit(ctx, tx, plans.Audited{
			Action: plans.AuditCreate, Target: "customers/" + l.Customer + "/portal-sessions", Customer: id, After: map[string]string{"path": l.Path},
		})
	})
	return token, Classify(err)
}

const linkColumns = ` customer, path, return_url, embed_origin, theme `

const lookAtLink = `SELECT` + linkColumns + `FROM portal_links WHERE token = $1 AND spent_at IS NULL AND expires_at > $2`

// PortalLink is what a link would open at now, µs. It spends nothing. plans.ErrLinkOver when the
// link was used, is too old, or never was.
func (s *Store) PortalLink(ctx context.Context, token string, now int64) (plans.PortalLink, error) {
	return one(ctx, s.pool, plans.ErrLinkOver, pgx.RowToStructByPos[plans.PortalLink], lookAtLink, hashOf(token), now)
}

const spendLink = `
	UPDATE portal_links SET spent_at = $2 WHERE token = $1 AND spent_at IS NULL AND expires_at > $2
	RETURNING` + linkColumns

// SpendPortalLink uses a link at now, µs. Of several callers at once one gets it, the others
// plans.ErrLinkOver.
func (s *Store) SpendPortalLink(ctx context.Context, token string, now int64) (plans.PortalLink, error) {
	return one(ctx, s.pool, plans.ErrLinkOver, pgx.RowToStructByPos[plans.PortalLink], spendLink, hashOf(token), now)
}

func hashOf(token string) []byte {
	hash := sha256.Sum256([]byte(token))
	return hash[:]
}
