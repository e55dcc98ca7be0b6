package session

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"
)

// SessionSettings are what a lane's session needs, so that no statistics can take the
// statement off its keys: rows are only ever reached by their key, in one nested loop over the
// parameters.
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

// PoolSettings are what the sessions of the engine's pool need for the same reason: a plan
// that was made and cached while a hot table was tiny would scan all of it when it is large.
// They are for a pool that does nothing else: lists and sums want hash joins.
var PoolSettings = map[string]string{
	"enable_seqscan":    "off",
	"enable_bitmapscan": "off",
	"enable_hashjoin":   "off",
	"enable_mergejoin":  "off",
	"enable_memoize":    "off",
	"jit":               "off",
}

// ByKey has what a transaction reads from now on reach hot tables by their keys, as
// PoolSettings have a pool. It is for transactions of pools that have other work, too.
func ByKey(ctx context.Context, tx pgx.Tx) error {
	var all strings.Builder
	for name, value := range PoolSettings {
		all.WriteString("SET LOCAL " + name + " = " + value + ";")
	}
	_, err := tx.Exec(ctx, all.String(), pgx.QueryExecModeSimpleProtocol)
	return err
}
