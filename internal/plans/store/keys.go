package store

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"quotad/internal/plans"
	"quotad/internal/quota/model"
)

// keyColumns lists the columns that scanKey reads.
const keyColumns = ` id, name, scope, created_at, expires_at, (SELECT u.used_on FROM key_uses u WHERE u.id = keys.id) `

func scanKey(row pgx.CollectableRow) (plans.Key, error) {
	var k plans.Key
	if err := row.Scan(&k.ID, &k.Name, &k.Scope, &k.CreatedAt, &k.ExpiresAt, &k.UsedOn); err != nil {
		return plans.Key{}, err
	}
	k.CreatedAt, k.ExpiresAt = k.CreatedAt.UTC(), inUTC(k.ExpiresAt)
	return k, nil
}

// newKey generates a key's id and secret. Both are random, because sequential ids would reveal the number
// of keys.
func newKey() (id, secret string) {
	var raw [12 + 32]byte
	_, _ = rand.Read(raw[:]) // never fails: the program would end instead
	return "key_" + base64.RawURLEncoding.EncodeToString(raw[:12]),
		"qk_" + base64.RawURLEncoding.EncodeToString(raw[12:])
}

const insertKey = `
	INSERT INTO keys (id, name, scope, hash, created_at, expires_at)
	VALUES ($1, $2, $3, $4, $5, $6) RETURNING` + keyColumns

// CreateKey creates a key and returns it with its secret, which is not stored. expiresAt is optional. It
// must be in the future and, in UTC, before the year 10000.
func (s *Store) CreateKey(ctx context.Context, name string, scope plans.Scope, expiresAt *time.Time) (k plans.Key, secret string, err error) {
	if err := plans.CheckNewKey(&name, scope, expiresAt); err != nil {
		return plans.Key{}, "", err
	}
	id, secret := newKey()
	hash := sha256.Sum256([]byte(secret))
	err = s.Write(ctx, KindKey, id, func(ctx context.Context, w *Writing) error {
		if expiresAt != nil && !expiresAt.After(w.Now) {
			return model.FieldErrors{{Field: "expires_at", Detail: "must be in the future"}}
		}
		k, err = w.insertKey(ctx, id, name, scope, hash[:], expiresAt)
		return err
	})
	if err != nil {
		return plans.Key{}, "", err
	}
	return k, secret, nil
}

// insertKey creates a key from the hash of its secret.
func (w *Writing) insertKey(ctx context.Context, id, name string, scope plans.Scope, hash []byte, expiresAt *time.Time) (plans.Key, error) {
	k, err := one(ctx, w, plans.ErrUnknownKey, scanKey, insertKey, id, name, scope, hash, w.Now, expiresAt)
	if err != nil {
		return k, err
	}
	return k, w.Audit(ctx, plans.Audited{Action: plans.AuditCreate, Target: "keys/" + id, After: auditKey(k)})
}

const listKeys = `SELECT` + keyColumns + `FROM keys WHERE revoked_at IS NULL AND id > $1 ORDER BY id LIMIT $2`

// ListKeys returns the keys that are not revoked, including expired keys.
func (s *Store) ListKeys(ctx context.Context, page plans.Page) (*plans.List[plans.Key], error) {
	limit, after, err := OpenPage(page, KindKey, plans.ValidKey)
	if err != nil {
		return nil, err
	}
	found, err := list(ctx, s, scanKey, listKeys, limit, after)
	if err != nil {
		return nil, err
	}
	return Paged(found, limit, KindKey, func(k plans.Key) string { return k.ID }), nil
}

// useKeys locks the rows in the order of the key, so that two nodes never deadlock.
const useKeys = `
	INSERT INTO key_uses AS u (id, used_on) SELECT k.id, $2::date FROM unnest($1::text[]) AS i(id) JOIN keys k ON k.id = i.id ORDER BY k.id
	ON CONFLICT (id) DO UPDATE SET used_on = excluded.used_on WHERE u.used_on < excluded.used_on`

// KeysUsed records that keys were used on a day, in UTC. Other nodes need not learn of the use.
func (s *Store) KeysUsed(ctx context.Context, ids []string, on time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, s.Within())
	defer cancel()
	_, err := s.pool.Exec(ctx, useKeys, ids, on)
	return Classify(err)
}

const revokeKey = `UPDATE keys SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL RETURNING` + keyColumns

const keyExists = `SELECT EXISTS (SELECT FROM keys WHERE id = $1)`

// RevokeKey revokes a key on every node within a second. It also ends the key's page sessions, its links
// into the portal, and the sessions that these links opened. Revoking a revoked key changes nothing. The
// error for a key that never existed is plans.ErrUnknownKey.
func (s *Store) RevokeKey(ctx context.Context, id string) error {
	if !plans.ValidKey(id) {
		return plans.ErrUnknownKey
	}
	return s.Write(ctx, KindKey, id, func(ctx context.Context, w *Writing) error {
		revoked, err := one(ctx, w, plans.ErrUnknownKey, scanKey, revokeKey, id, w.Now)
		if err == nil {
			if _, err := w.Exec(ctx, endSessionsOfKey, id); err != nil {
				return err
			}
			return w.Audit(ctx, plans.Audited{Action: "revoke", Target: "keys/" + id, Before: auditKey(revoked)})
		}
		if !errors.Is(err, plans.ErrUnknownKey) {
			return err
		}
		exists, err := one(ctx, w, plans.ErrUnknownKey, pgx.RowTo[bool], keyExists, id)
		if err == nil && !exists {
			err = plans.ErrUnknownKey
		}
		return cmp.Or(err, errUnchanged)
	})
}

const keyOfSecret = `SELECT scope, revoked_at IS NOT NULL FROM keys WHERE hash = $1`

// EnsureKey creates a key from a secret that the operator chose (16 to 200 bytes of printable ASCII),
// unless the key exists already. An existing key is not changed. If the existing key is revoked or has
// another scope, the error is a model.FieldErrors.
func (s *Store) EnsureKey(ctx context.Context, secret, name string, scope plans.Scope) error {
	if err := plans.CheckChosenKey(secret, &name, scope); err != nil {
		return err
	}
	hash := sha256.Sum256([]byte(secret))
	id, _ := newKey()
	type present struct {
		Scope   plans.Scope
		Revoked bool
	}
	return s.Write(ctx, KindKey, id, func(ctx context.Context, w *Writing) error {
		old, err := one(ctx, w, plans.ErrUnknownKey, pgx.RowToStructByPos[present], keyOfSecret, hash[:])
		switch {
		case errors.Is(err, plans.ErrUnknownKey):
			_, err = w.insertKey(ctx, id, name, scope, hash[:], nil)
			return err
		case err != nil:
			return err
		case old.Revoked:
			return model.FieldErrors{{Field: "secret", Detail: "was revoked: choose another"}}
		case old.Scope != scope:
			return model.FieldErrors{{Field: "secret", Detail: "is a key of scope " + string(old.Scope) + " already: choose another"}}
		}
		return errUnchanged
	})
}

const hasAdminKey = `
	SELECT EXISTS (SELECT FROM keys WHERE scope = 'admin' AND revoked_at IS NULL
		AND (expires_at IS NULL OR expires_at > clock_timestamp()))`

// FirstAdminKey creates a key of scope admin and returns its secret. If there is an admin key that is
// neither revoked nor expired, FirstAdminKey creates no key and returns an empty secret. If several nodes
// start on one empty database, only one node creates a key.
func (s *Store) FirstAdminKey(ctx context.Context, name string) (secret string, err error) {
	id, secret := newKey()
	hash := sha256.Sum256([]byte(secret))
	err = s.Write(ctx, KindKey, id, func(ctx context.Context, w *Writing) error {
		there, err := one(ctx, w, plans.ErrUnknownKey, pgx.RowTo[bool], hasAdminKey)
		if err == nil && there {
			secret = ""
			return errUnchanged
		}
		if err == nil {
			_, err = w.insertKey(ctx, id, name, plans.ScopeAdmin, hash[:], nil)
		}
		return err
	})
	if err != nil {
		return "", err
	}
	return secret, nil
}
