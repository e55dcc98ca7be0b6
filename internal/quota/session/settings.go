package session

import (
	"context"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// SessionSettings are the settings of the session of a lane or worker. With them, every plan reaches rows only by
// their key, in one nested loop over the parameters. No statistics can change that.
var SessionSettings = map[string]string{
	"plan_cache_mode":                     "force_generic_plan",
	"enable_seqscan":                      "off",
	"enable_bitmapscan":                   "off",
	"enable_hashjoin":                     "off",
	"enable_mergejoin":                    "off",
	"enable_memoize":                      "off",
	"jit":                                 "off",
	"lock_timeout":                        "1500ms",
	"statement_timeout":                   "3s",
	"idle_in_transaction_session_timeout": "2s", // for a node that has left the network and has locked rows
	"synchronous_commit":                  "on",
	"default_transaction_isolation":       "read committed",
}

// SettingsWithin returns SessionSettings for hits that wait within a time. The timeout for locks is so short that
// a hit that meets a lock is rolled back twice before that time has passed, so its outcome is known.
func SettingsWithin(within time.Duration) map[string]string {
	settings := maps.Clone(SessionSettings)
	settings["lock_timeout"] = strconv.FormatInt(min(within*2/5, lockLimit).Milliseconds(), 10) + "ms"
	return settings
}

// lockLimit is the maximum time for which a session waits for a lock.
const lockLimit = 1500 * time.Millisecond

// PoolSettings are the settings of the engine's pool, for the same reason. Otherwise a plan that was made while a
// hot table was tiny would still scan the table when it is large. They are only suitable for a pool without other
// work, because lists and sums benefit from hash joins.
//
// The transactions of the pool lock rows that others need. If their node becomes silent, they end after the same
// time as the transactions of a worker.
var PoolSettings = map[string]string{
	"enable_seqscan":    "off",
	"enable_bitmapscan": "off",
	"enable_hashjoin":   "off",
	"enable_mergejoin":  "off",
	"enable_memoize":    "off",
	"jit":               "off",

	"idle_in_transaction_session_timeout": "2s",
}

// ByKey applies PoolSettings to the rest of one transaction. It serves transactions of pools that have other work,
// too.
func ByKey(ctx context.Context, tx pgx.Tx) error {
	var all strings.Builder
	for name, value := range PoolSettings {
		all.WriteString("SET LOCAL " + name + " = '" + value + "';")
	}
	_, err := tx.Exec(ctx, all.String(), pgx.QueryExecModeSimpleProtocol)
	return err
}
