package closing

import (
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"quotad/internal/billing/accounts"
	"quotad/internal/billing/invoices"
	"quotad/internal/plans/catalog"
	"quotad/internal/quota"
)

// Options configure a Worker. All parts are required.
type Options struct {
	Pool     *pgxpool.Pool
	Accounts *accounts.Accounts
	Invoices *invoices.Invoices
	Catalog  *catalog.Catalog
	Engine   *quota.Engine
	// Stopwatch shows the time since some moment, and never steps.
	Stopwatch func() time.Duration
	Log       *slog.Logger // nil: slog.Default

	Pace int // customers that Run closes in a second at most, while many are due; 0: DefaultPace
}

// Worker does what is due of billing. It is safe for concurrent use.
type Worker struct {
	options     Options
	accounts    *accounts.Accounts
	invoices    *invoices.Invoices
	pool        *pgxpool.Pool
	wake        chan struct{}
	stepTimeout time.Duration // the constant; tests shorten it
	wakeAtOnce  int           // the constant; tests lower it
	size        atomic.Int64  // of the next batch
	worked      worked
	watched     watched
}

// New returns a worker. It starts nothing: see Run.
func New(o Options) *Worker {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Pace <= 0 {
		o.Pace = DefaultPace
	}
	w := &Worker{
		options: o, accounts: o.Accounts, invoices: o.Invoices, pool: o.Pool, wake: make(chan struct{}, 1), stepTimeout: stepTimeout, wakeAtOnce: wakeAtOnce,
	}
	w.size.Store(batchLeast)
	return w
}
