package plans

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"quotad/internal/cache"
	"quotad/internal/quota"
)

// maxLookups bounds the keys looked up in the database at once: nobody who shows wrong
// keys has been let in yet, and must not take the pool from those who have.
const maxLookups = 2

type keyHash [sha256.Size]byte

// keyring is all live keys as of one reading. It is replaced at every change of a key.
type keyring struct {
	asOf int64 // a change that it was read at or after
	live map[keyHash]*liveKey
	// others remembers look-ups of keys beyond the first maxKeys, nil ones too; nil
	// while there are none beyond.
	others *cache.Cache[keyHash, *liveKey]
}

type liveKey struct {
	Key
	expires int64 // µs since the Unix epoch; 0: never
}

const loadKeys = `SELECT hash,` + keyColumns + `FROM keys WHERE revoked_at IS NULL ORDER BY created_at LIMIT $1`

// readKeys reads the keys that are not revoked, expired ones too: whether they are is
// asked at each use.
func readKeys(ctx context.Context, from querier, asOf int64) (*keyring, error) {
	ring := &keyring{asOf: asOf, live: make(map[keyHash]*liveKey)}
	rows, _ := from.Query(ctx, loadKeys, maxKeys+1)
	defer rows.Close()
	for rows.Next() {
		k, hash, err := scanLiveKey(rows)
		if err != nil {
			return nil, err
		}
		if len(ring.live) == maxKeys {
			ring.others = newCache[keyHash, *liveKey](maxKeys)
			break
		}
		ring.live[hash] = k
	}
	return ring, rows.Err()
}

func scanLiveKey(row pgx.Row) (*liveKey, keyHash, error) {
	k, raw := new(liveKey), []byte(nil)
	if err := row.Scan(&raw, &k.ID, &k.Name, &k.Scope, &k.CreatedAt, &k.ExpiresAt); err != nil {
		return nil, keyHash{}, err
	}
	k.utc()
	if k.ExpiresAt != nil {
		k.expires = k.ExpiresAt.UnixMicro()
	}
	if len(raw) != sha256.Size {
		return nil, keyHash{}, fmt.Errorf("key %s is stored with a hash of %d bytes", k.ID, len(raw))
	}
	return k, keyHash(raw), nil
}

// Authenticate returns the live key of a secret, without a statement and without an
// allocation while there are at most 10,000 keys. Errors: ErrUnknownKey for a wrong,
// revoked or expired one, quota.ErrUnavailable when the keys have never been read, or
// when a key has an expiry and the time cannot be told.
//
// The secret is looked up by its SHA-256, not compared: how long that takes says
// something about the hash of a guess, which tells nothing about the hash, let alone
// the secret, of a key. So there is no timing to hide.
func (c *Catalog) Authenticate(ctx context.Context, secret string) (Key, error) {
	var buffer [maxSecret]byte // []byte(secret) would be allocated
	if len(secret) > maxSecret {
		return Key{}, ErrUnknownKey
	}
	hash := keyHash(sha256.Sum256(buffer[:copy(buffer[:], secret)]))
	m := c.memory.Load()
	if !m.contacted {
		if err := c.CatchUp(ctx, 0); err != nil {
			return Key{}, err
		}
		m = c.memory.Load()
	}
	ring := m.keys.Load()
	key := ring.live[hash]
	if key == nil && ring.others != nil {
		var err error
		if key, err = c.lookUpKey(ctx, m, ring, hash); err != nil {
			return Key{}, err
		}
	}
	if key == nil {
		return Key{}, ErrUnknownKey
	}
	if key.expires != 0 {
		now, err := c.options.Now(ctx)
		if err != nil {
			return Key{}, fmt.Errorf("whether the key has expired cannot be told: %w", quota.Unreached(err))
		}
		if now >= key.expires {
			return Key{}, ErrUnknownKey
		}
	}
	return key.Key, nil
}

const lookUpKey = `SELECT hash,` + keyColumns + `FROM keys WHERE hash = $1 AND revoked_at IS NULL`

// lookUpKey finds a key that is not among the first maxKeys; nil when there is none. What
// it finds goes to the ring it was looked up for, and with it when a key changes.
func (c *Catalog) lookUpKey(ctx context.Context, m *memory, ring *keyring, hash keyHash) (*liveKey, error) {
	if key, ok := ring.others.Get(hash, 0); ok {
		return key, nil
	}
	return fly(ctx, &m.flights, fmt.Sprintf("key %d %s", ring.asOf, hex.EncodeToString(hash[:])), func(ctx context.Context) (*liveKey, error) {
		select {
		case c.lookups <- struct{}{}:
			defer func() { <-c.lookups }()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		key, _, err := scanLiveKey(c.store.pool.QueryRow(ctx, lookUpKey, hash[:]))
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return nil, err
		}
		ring.others.Add(hash, key, cache.NoExpiry)
		return key, nil
	})
}
