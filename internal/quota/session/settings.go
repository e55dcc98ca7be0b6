package session

import (
	"context"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// SessionSettings are the settings of a lane's or worker's session. With them each plan reaches
// rows only by their key, in one nested loop over the parameters. No statistics can change that.
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
	"idle_in_transaction_session_timeout": "2s", // of a node that is gone from the network, and holds rows
	"synchronous_commit":                  "on",
	"default_transaction_isolation":       "read committed",
}

// SettingsWithin are SessionSettings for hits that wait within a time. A lock is waited for so shortly
// that a hit which meets one is rolled back twice before that time is over, and its outcome is known.
func SettingsWithin(within time.Duration) map[string]string {
	settings := maps.Clone(SessionSettings)
	settings["lock_timeout"] = strconv.FormatInt(min(within*2/5, lockLimit).Milliseconds(), 10) + "ms"
	return settings
}

// lockLimit is how long a session waits for a lock at most.
const lockLimit = 1500 * time.Millisecond

// PoolSettings are the settings of the engine's pool, for the same reason. Otherwise a plan that
// was made while a hot table was tiny would still scan the table when it is large. They are only
// for a pool that does nothing else: lists and sums want hash joins. Such transactions hold rows
// that others need, and so no longer than those of a worker when their node says no more.
var PoolSettings = map[string]string{
	"enable_seqscan":    "off",
	"enable_bitmapscan": "off",
	"enable_hashjoin":   "off",
	"enable_mergejoin":  "off",
	"enable_memoize":    "off",
	"jit":               "off",

	"idle_in_transaction_session_timeout": "2s",
}

// ByKey applies PoolSettings to the rest of one transaction. It is for transactions of pools
// that have other work, too.
func ByKey(ctx context.Context, tx pgx.Tx) error {
	var all strings.Builder
	for name, value := range PoolSettings {
		all.WriteString("SET LOCAL " + name + " = '" + value + "';")
	}
	_, err := tx.Exec(ctx, all.String(), pgx.QueryExecModeSimpleProtocol)
	return err
}
