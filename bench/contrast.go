package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"quotad/internal/postgres/embedded"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"
)

// What people limit with otherwise, each behind the shell that answers for the handler.
const (
	backendUpdate        = "update"
	backendIncr          = "incr"
	backendBucket        = "bucket"
	backendIncrDurable   = "incr-durable"
	backendBucketDurable = "bucket-durable"
)

// backendConns is how many connections a backend's pool has: enough to keep a few cores
// busy, and within the embedded server's 100.
const backendConns = 32

// A backend charges a customer one unit and says whether that was allowed.
type backend func(ctx context.Context, customer string) (bool, error)

// contrast is the handler with one call to a backend.
type contrast struct {
	answer *answer
	allow  backend
}

var customerField = []byte(`"customer":"`)

// ServeHTTP finds the customer in the body without decoding it, calls the backend, and
// answers as the handler does.
func (c *contrast) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	_, rest, _ := bytes.Cut(body, customerField)
	customer, _, ok := bytes.Cut(rest, []byte(`"`))
	if !ok {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	allowed, err := c.allow(r.Context(), string(customer))
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	case !allowed:
		w.WriteHeader(http.StatusTooManyRequests)
	default:
		c.answer.write(w)
	}
}

// openBackend connects to what a kind needs, at an address: a database's URL or the
// socket of redis-server.
func openBackend(ctx context.Context, kind, where string) (backend, error) {
	switch kind {
	case backendUpdate:
		return openUpdate(ctx, where)
	case backendIncr, backendIncrDurable:
		return incr(openRedis(where)), nil
	case backendBucket, backendBucketDurable:
		client := openRedis(where)
		return tokenBucket(client), tokenBucketScript.Load(ctx, client).Err()
	}
	return nil, fmt.Errorf("no backend %q", kind)
}

// The limit of all of them, never reached.
const (
	contrastLimit  = 999_999_999
	contrastWindow = time.Hour
)

// updateSQL charges a fixed window, one transaction a hit.
const updateSQL = `
UPDATE bench_counters SET used = CASE WHEN began = $2 THEN used + 1 ELSE 1 END, began = $2
WHERE key = $1 AND (began <> $2 OR used < $3) RETURNING used`

const makeUpdateSQL = `
DROP TABLE IF EXISTS bench_counters;
CREATE TABLE bench_counters (key text PRIMARY KEY, began bigint NOT NULL, used bigint NOT NULL) WITH (fillfactor = 50);
INSERT INTO bench_counters SELECT key, 0, 0 FROM customers WHERE key LIKE 'two-%';
ANALYZE bench_counters`

func openUpdate(ctx context.Context, url string) (backend, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	config.MaxConns = backendConns
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, customer string) (bool, error) {
		var used int64
		began := time.Now().Truncate(contrastWindow).Unix()
		err := pool.QueryRow(ctx, updateSQL, customer, began, contrastLimit).Scan(&used)
		return err == nil, err
	}, nil
}

func openRedis(socket string) *redis.Client {
	return redis.NewClient(&redis.Options{Network: "unix", Addr: socket, PoolSize: backendConns})
}

// incr is the fixed window that most people begin with.
func incr(client *redis.Client) backend {
	return func(ctx context.Context, customer string) (bool, error) {
		key := "window:" + customer
		used, err := client.Incr(ctx, key).Result()
		if err == nil && used == 1 {
			err = client.Expire(ctx, key, contrastWindow).Err()
		}
		return used <= contrastLimit, err
	}
}

// tokenBucketScript is the usual one: a level and an instant in a hash, refilled by the
// server's own clock.
var tokenBucketScript = redis.NewScript(`
local limit, window, cost = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local bucket = redis.call('HMGET', KEYS[1], 'level', 'at')
local level, at = tonumber(bucket[1]) or limit, tonumber(bucket[2]) or now
level = math.min(limit, level + (now - at) * limit / window)
local allowed = level >= cost
if allowed then level = level - cost end
redis.call('HSET', KEYS[1], 'level', tostring(level), 'at', now)
redis.call('PEXPIRE', KEYS[1], math.ceil(window / 1000))
return allowed and 1 or 0`)

func tokenBucket(client *redis.Client) backend {
	return func(ctx context.Context, customer string) (bool, error) {
		n, err := tokenBucketScript.EvalSha(ctx, client, []string{"bucket:" + customer},
			contrastLimit, contrastWindow.Microseconds(), 1).Int()
		return n == 1, err
	}
}

// startContrast starts the shell with a backend, and the backend where it is Redis.
func (b *bench) startContrast(ctx context.Context, m *match, a *answer) (stop func() error, err error) {
	stopBackend, where, err := b.startBackend(ctx, m.row)
	if err != nil {
		return nil, err
	}
	shell, address, err := b.startShell(ctx, a, m.row.shell, where)
	if err != nil {
		return nil, errors.Join(err, stopBackend())
	}
	m.subject = []string{address}
	return func() error { return errors.Join(shell.stop(), stopBackend()) }, nil
}

// startBackend starts what a contrast row's shell calls, and returns its address.
func (b *bench) startBackend(ctx context.Context, r *row) (stop func() error, where string, err error) {
	if r.shell == backendUpdate {
		url, _ := embedded.RunningURL(b.service.dataDir())
		if _, err := b.service.db.PgConn().Exec(ctx, makeUpdateSQL).ReadAll(); err != nil {
			return nil, "", fmt.Errorf("make the table: %w", err)
		}
		return func() error { return nil }, url, nil
	}
	// What is in no setting is as Debian's package has it: snapshots now and then.
	flags := []string{"--appendonly", "no"}
	if r.shell == backendIncrDurable || r.shell == backendBucketDurable {
		flags = []string{"--appendonly", "yes", "--appendfsync", "always"}
	}
	c, socket, err := b.startRedis(ctx, flags)
	if err != nil {
		return nil, "", err
	}
	return c.stop, socket, nil
}

// redisCommand finds the server's program. Debian's package redis-tools has it, too, under
// the name of a check of its files, and does not start a server of its own.
func redisCommand(ctx context.Context, args ...string) (*exec.Cmd, error) {
	for _, name := range []string{"redis-server", "redis-check-rdb"} {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		version := exec.CommandContext(ctx, path, "--version")
		version.Args[0] = "redis-server"
		if out, err := version.Output(); err != nil || !strings.HasPrefix(string(out), "Redis server ") {
			continue
		}
		cmd := exec.Command(path, args...) //nolint:noctx // it outlives any context; stop ends it in order
		cmd.Args[0] = "redis-server"
		return cmd, nil
	}
	return nil, errors.New("no redis-server: install it with `scripts/deps.sh redis`, or leave the rows of Redis out with -rows")
}

// startRedis starts a server on a socket, with its files in a new directory.
func (b *bench) startRedis(ctx context.Context, flags []string) (*child, string, error) {
	dir, err := os.MkdirTemp(b.dir, "redis-")
	if err != nil {
		return nil, "", err
	}
	socket := filepath.Join(dir, "s")
	cmd, err := redisCommand(ctx, append([]string{"--port", "0", "--unixsocket", socket, "--dir", dir}, flags...)...)
	if err != nil {
		return nil, "", err
	}
	c, err := spawnLogged("redis-server", filepath.Join(dir, "log"), cmd)
	if err != nil {
		return nil, "", err
	}
	client := redis.NewClient(&redis.Options{Network: "unix", Addr: socket})
	defer client.Close()
	if err := c.await(ctx, shellWait, func() error { return client.Ping(ctx).Err() }); err != nil {
		return nil, "", errJoinStop(err, c)
	}
	return c, socket, nil
}
