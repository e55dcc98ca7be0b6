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
	// maxLookups bounds the keys that are looked up in the database at once. Clients with
	// wrong keys must not take the pool's connections from those with good ones. Look-ups
	// beyond it get ErrBusy.
	maxLookups = 2
	// maxWrongKept bounds the wrong keys that are remembered. A wrong key that comes again and
	// again is looked up once.
	maxWrongKept = 1000
	// maxEndedKept bounds the revoked keys that are remembered as keys that once were.
	maxEndedKept = 1000
)

var errManyLookups = fmt.Errorf("%w: too many unknown keys are being looked up", session.ErrBusy)

type keyHash [sha256.Size]byte

// keyring is the live keys as of one read of their table. Each change of a key replaces it.
type keyring struct {
	live map[keyHash]*liveKey
	// wrong remembers secrets that are not the secret of any key. It is nil while live holds
	// all keys there are: then a secret that is not in live is wrong. Keys beyond the first
	// maxKeys are in memory.lateKeys.
	wrong *cache.Cache[keyHash, struct{}]
}

// end remembers the keys that were live before and are no more.
func (m *memory) end(before, after *keyring) {
	for hash := range before.live {
		if after.live[hash] == nil {
			m.endedKeys.Add(hash, struct{}{}, cache.NoExpiry)
		}
	}
}

type liveKey struct {
	fact // of a key in lateKeys only
	plans.Key
	expires int64       // µs since the Unix epoch; 0: never
	used    atomic.Bool // see Catalog.use
}

// liveKeyColumns are read by scanLiveKey.
const liveKeyColumns = ` hash, id, name, scope, created_at, expires_at `

const loadKeys = `SELECT` + liveKeyColumns + `FROM keys WHERE revoked_at IS NULL ORDER BY created_at LIMIT $1`

// readKeys reads the keys that are not revoked. Expired ones are among them: Authenticate
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

// Authenticate returns the live key of a secret. It takes no statement and no allocation while
// there are at most 10,000 keys. Beyond them a key is looked up in the database at its first
// use here. Guesses then neither evict known keys nor delay them.
//
// unknown is called before a key that is not in memory is looked up, or refused. When it returns
// an error, that is Authenticate's. It is not called for keys that this node has known: a key that
// was revoked or has expired is no guess.
//
// Errors: plans.ErrUnknownKey for a wrong, revoked or expired key; session.ErrBusy for a key
// that is not known here, while many such keys are looked up; session.ErrUnavailable and
// session.ErrNoSession when the keys have never been read, or when a key has an expiry and the
// time is not known.
//
// The secret is looked up by its SHA-256 and not compared. The time of a look-up may tell
// something about the hash of a guess. That tells nothing about the hash or the secret of a
// key. So there is no timing to hide.
func (c *Catalog) Authenticate(ctx context.Context, secret string, unknown func() error) (plans.Key, error) {
	var buffer [plans.MaxSecret]byte // []byte(secret) would be allocated
	if len(secret) > plans.MaxSecret {
		return plans.Key{}, cmp.Or(unknown(), plans.ErrUnknownKey)
	}
	return c.authenticate(ctx, sha256.Sum256(buffer[:copy(buffer[:], secret)]), unknown)
}

// Live returns the live key of a secret's SHA-256, for sessions that a key has begun. Its errors
// are those of Authenticate.
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

// findKey finds a key that is not among the first maxKeys; nil when there is none.
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

// lookUpKey asks the database for a key; nil when there is none. A key that was found stays known
// until a change concerns it. A wrong key stays known as wrong until any key changes.
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

// withFirst is a row that has a column in front of those that are scanned.
type withFirst struct {
	pgx.Row
	first any
}

// Scan implements pgx.Row.
func (r withFirst) Scan(dest ...any) error { return r.Row.Scan(append([]any{r.first}, dest...)...) }
