package catalog

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/jackc/pgx/v5"

	"quotad/internal/cache"
	"quotad/internal/plans"
	"quotad/internal/plans/store"
	"quotad/internal/quota/session"
)

const (
	// maxLookups limits the keys that are looked up in the database at once. Clients with wrong keys thus
	// cannot take the pool's connections from clients with valid keys. Further look-ups get ErrBusy.
	maxLookups = 2
	// maxWrongKept limits the wrong keys that are cached. A cached wrong key is looked up only once, however
	// often it is used.
	maxWrongKept = 1000
	// maxEndedKept limits the revoked keys that are cached as formerly valid keys.
	maxEndedKept = 1000
)

var errManyLookups = fmt.Errorf("%w: too many unknown keys are being looked up", session.ErrBusy)

type keyHash [sha256.Size]byte

// keyring contains the live keys of one read of their table. Each change of a key replaces the keyring.
type keyring struct {
	live map[keyHash]*liveKey
	// wrong caches secrets that belong to no key. If live contains all existing keys, wrong is nil, because
	// every secret outside live is then wrong. Keys beyond the first maxKeys are in memory.lateKeys.
	wrong *cache.Cache[keyHash, struct{}]
}

// end caches the keys that were live before and are live no longer.
func (m *memory) end(before, after *keyring) {
	for hash := range before.live {
		if after.live[hash] == nil {
			m.endedKeys.Add(hash, struct{}{}, cache.NoExpiry)
		}
	}
}

type liveKey struct {
	fact // set only for a key in lateKeys
	plans.Key
	expires int64       // µs since the Unix epoch; 0 if the key never expires
	used    atomic.Bool // see Catalog.use
}

// liveKeyColumns lists the columns that scanLiveKey reads.
const liveKeyColumns = ` hash, id, name, scope, created_at, expires_at `

const loadKeys = `SELECT` + liveKeyColumns + `FROM keys WHERE revoked_at IS NULL ORDER BY created_at LIMIT $1`

// readKeys reads the keys that are not revoked. The result includes expired keys, because Authenticate
// checks the expiry at each use.
func readKeys(ctx context.Context, from *pgx.Conn) (*keyring, error) {
	ring := &keyring{live: make(map[keyHash]*liveKey)}
	rows, _ := from.Query(ctx, loadKeys, maxKeys+1)
	defer rows.Close()
	for rows.Next() {
		k, hash, err := scanLiveKey(rows)
		if err != nil {
			return nil, err
		}
		if len(ring.live) == maxKeys {
			ring.wrong = newCache[keyHash, struct{}](maxWrongKept)
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
	k.CreatedAt = k.CreatedAt.UTC()
	if k.ExpiresAt != nil {
		expires := k.ExpiresAt.UTC()
		k.ExpiresAt, k.expires = &expires, expires.UnixMicro()
	}
	if len(raw) != sha256.Size {
		return nil, keyHash{}, fmt.Errorf("key %s is stored with a hash of %d bytes", k.ID, len(raw))
	}
	return k, keyHash(raw), nil
}

// Authenticate returns the live key of a secret. With at most 10,000 keys, Authenticate needs no
// statement and no allocation. Further keys are looked up in the database at their first use on this
// node. Guesses then neither evict known keys nor delay them.
//
// Authenticate calls unknown before it looks up or rejects a key that is not in memory, and returns the
// error of unknown if there is one. It does not call unknown for keys that this node has known, because a
// revoked or expired key is no guess.
//
// The error is plans.ErrUnknownKey for a wrong, revoked or expired key, and session.ErrBusy for a key
// unknown to this node while many such keys are being looked up. The error is session.ErrUnavailable or
// session.ErrNoSession if the keys have never been read, or if the time is unknown and the key has an
// expiry.
//
// The secret is looked up by its SHA-256, without a comparison. The time of a look-up may reveal
// something about the hash of a guess, but nothing about the hash or the secret of a key. There is no
// timing to hide.
func (c *Catalog) Authenticate(ctx context.Context, secret string, unknown func() error) (plans.Key, error) {
	var buffer [plans.MaxSecret]byte // []byte(secret) would allocate
	if len(secret) > plans.MaxSecret {
		return plans.Key{}, cmp.Or(unknown(), plans.ErrUnknownKey)
	}
	return c.authenticate(ctx, sha256.Sum256(buffer[:copy(buffer[:], secret)]), unknown)
}

// Live returns the live key for the SHA-256 of a secret, for sessions that were started with a key. Its
// errors are the errors of Authenticate.
func (c *Catalog) Live(ctx context.Context, hash [sha256.Size]byte) (plans.Key, error) {
	return c.authenticate(ctx, hash, func() error { return nil })
}

func (c *Catalog) authenticate(ctx context.Context, hash keyHash, unknown func() error) (plans.Key, error) {
	m := c.memory.Load()
	if !m.contacted {
		if err := c.CatchUp(ctx, 0); err != nil {
			return plans.Key{}, err
		}
		m = c.memory.Load()
	}
	ring := m.keys.Load()
	key := ring.live[hash]
	if key == nil {
		var err error
		if key, err = c.findKey(ctx, m, ring, hash, unknown); err != nil {
			return plans.Key{}, err
		}
	}
	if key == nil {
		return plans.Key{}, plans.ErrUnknownKey
	}
	if key.expires != 0 {
		now, err := c.options.Now(ctx)
		if err != nil {
			return plans.Key{}, fmt.Errorf("whether the key has expired cannot be told: %w", session.Unreached(err))
		}
		if now >= key.expires {
			return plans.Key{}, plans.ErrUnknownKey
		}
	}
	c.use(key)
	return key.Key, nil
}

const lookUpKey = `SELECT (SELECT number FROM change_number),` + liveKeyColumns + `FROM keys WHERE hash = $1 AND revoked_at IS NULL`

// findKey finds a key beyond the first maxKeys. The result is nil if there is no such key.
func (c *Catalog) findKey(ctx context.Context, m *memory, ring *keyring, hash keyHash, unknown func() error) (*liveKey, error) {
	if key, ok := m.lateKeys.Get(hash, 0); ok && key.valid() {
		return key, nil
	}
	if _, ended := m.endedKeys.Get(hash, 0); ended {
		return nil, nil //nolint:nilnil // there is none any more
	}
	if err := unknown(); err != nil || ring.wrong == nil {
		return nil, err
	}
	return c.lookUpKey(ctx, m, ring, hash)
}

// lookUpKey looks up a key in the database. The result is nil if there is no such key. A key that was
// found stays cached until a change concerns it. A wrong key stays cached as wrong until any key changes.
func (c *Catalog) lookUpKey(ctx context.Context, m *memory, ring *keyring, hash keyHash) (*liveKey, error) {
	if _, wrong := ring.wrong.Get(hash, 0); wrong {
		return nil, nil //nolint:nilnil // there is none
	}
	key, err := fly(ctx, c.options.Within, &m.flights, fmt.Sprintf("key %p %s", ring, hex.EncodeToString(hash[:])), func(ctx context.Context) (*liveKey, error) {
		select {
		case c.lookups <- struct{}{}:
			defer func() { <-c.lookups }()
		default:
			return nil, errManyLookups
		}
		var asOf int64
		key, _, err := scanLiveKey(withFirst{c.pool.QueryRow(ctx, lookUpKey, hash[:]), &asOf})
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			ring.wrong.Add(hash, struct{}{}, cache.NoExpiry)
			return nil, nil //nolint:nilnil // there is none
		case err != nil:
			return nil, err
		}
		key.fact = m.fact(store.KindKey, key.ID, asOf)
		remember(m.lateKeys, hash, key)
		return key, nil
	})
	if err == nil && key != nil && !key.valid() {
		return nil, errOvertaken
	}
	return key, err
}

// withFirst is a row with an additional column before the columns that are scanned.
type withFirst struct {
	pgx.Row
	first any
}

// Scan implements pgx.Row.
func (r withFirst) Scan(dest ...any) error { return r.Row.Scan(append([]any{r.first}, dest...)...) }
