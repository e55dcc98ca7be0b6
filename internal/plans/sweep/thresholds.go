package sweep

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"quotad/internal/plans/store"
	"quotad/internal/postgres"
	"quotad/internal/quota/model"
	"quotad/internal/quota/session"
	"quotad/internal/quota/upkeep"
)

const (
	editsEvery = time.Second // the check is at most 2 s after the edit
	// editsRows is the number of changes, or of customers of one change, that are checked at a time.
	editsRows = 100
	// editsLimit is the time limit of one step. The step's lease is a little longer.
	editsLimit = 10 * time.Second
)

// ThresholdsOptions configures Thresholds. All fields except Log are required.
type ThresholdsOptions struct {
	Store *store.Store
	// Now returns PostgreSQL's time, µs since the Unix epoch.
	Now func(context.Context) (int64, error)
	// CatchUp waits until the node has applied a change.
	CatchUp func(context.Context, int64) error
	// Targets is catalog.Catalog.CappedTargets.
	Targets func(context.Context, []model.CounterKey) ([]*model.Target, error)
	// Notify is quota.Engine.Notify.
	Notify func(context.Context, []*model.Target) error
	Log    *slog.Logger // nil means slog.Default
}

// Thresholds raises the events of thresholds that limits have reached because they were edited. Charges
// cannot raise these events in time, because the customer may send no hit for days. Thresholds goes
// through all changes of plans, customers and test clocks in their order, and records its progress in a
// row of the database. No change is missed in a crash, and repeating a check raises no event twice.
//
// A change is checked when it is a second old. By then all nodes use the change, so no other node can
// make a charge under the previous limits after the check.
//
// All nodes run Thresholds on the same database, and one node at a time works.
type Thresholds struct{ ThresholdsOptions }

// NewThresholds returns Thresholds, which Run runs.
func NewThresholds(o ThresholdsOptions) *Thresholds {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	return &Thresholds{o}
}

// Run checks edits until ctx ends.
func (t *Thresholds) Run(ctx context.Context) {
	edits := upkeep.Repeated{
		Log: t.Log, First: editsEvery, Pause: editsEvery, Do: t.follow,
		Fails: "thresholds that edits have reached cannot be told now; it is tried again", Works: "thresholds that edits have reached are told again",
	}
	edits.Run(ctx)
}

// edits is the next step of work. It contains either all changes up to upTo, or one change with a part of the
// customers that the change affects.
type edits struct {
	number, after int64 // progress before the step
	upTo, last    int64 // progress after the step
	change        int64 // newest change of the step
	customers     []int64
}

// follow checks all changes that are old enough.
func (t *Thresholds) follow(ctx context.Context) error {
	for {
		more, err := t.step(ctx)
		if err != nil || !more {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(walkPause):
		}
	}
}

func (t *Thresholds) step(ctx context.Context) (more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, editsLimit)
	defer cancel()
	e, err := t.take(ctx)
	if err != nil || e == nil {
		return false, store.Classify(err)
	}
	if err = t.next(ctx, e); err == nil && len(e.customers) > 0 {
		err = t.ask(ctx, e)
	}
	if err != nil {
		e.upTo, e.last = e.number, e.after
	}
	return true, errors.Join(store.Classify(err), t.done(context.WithoutCancel(ctx), e))
}

// takeEdits leases the work to one node. After a backup was restored, the stored number may exceed the
// newest change, so takeEdits lowers it.
const takeEdits = `
	UPDATE threshold_changes t SET leased_until = clock_timestamp() + interval '12 seconds', number = least(t.number, n.number),
		after = CASE WHEN t.number > n.number THEN 0 ELSE t.after END
	FROM change_number n
	WHERE t.leased_until < clock_timestamp() AND (t.number > n.number OR EXISTS (
		SELECT FROM changes c WHERE c.number > t.number AND c.at < clock_timestamp() - interval '1 second'))
	RETURNING t.number, t.after`

func (t *Thresholds) take(ctx context.Context) (*edits, error) {
	e := new(edits)
	err := t.Store.Pool().QueryRow(ctx, takeEdits).Scan(&e.number, &e.after)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil //nolint:nilnil // there is nothing to do, which is no error
	}
	return e, err
}

const doneEdits = `
	UPDATE threshold_changes SET leased_until = '-infinity', number = $3, after = $4 WHERE number = $1 AND after = $2`

func (t *Thresholds) done(ctx context.Context, e *edits) error {
	ctx, cancel := context.WithTimeout(ctx, t.Store.Within())
	defer cancel()
	_, err := t.Store.Pool().Exec(ctx, doneEdits, e.number, e.after, e.upTo, e.last)
	return store.Classify(err)
}

const nextEdits = `
	SELECT number, kind, key FROM changes
	WHERE number > $1 AND at < clock_timestamp() - interval '1 second' ORDER BY number LIMIT $2`

// notifying is the condition for customers whose limits may have thresholds. All versions of the
// customer's plan count, because the customer may have any version.
const notifying = `
	c.archived_at IS NULL AND (
		EXISTS (SELECT FROM plan_versions v WHERE v.plan_id = c.plan_id AND v.document @? '$.limits[*].notify') OR
		EXISTS (SELECT FROM caps p WHERE p.customer_id = c.id))`

// editedCustomers leaves out anonymous customers that a hit has just created.
const editedCustomers = `
	SELECT c.id FROM customers c WHERE c.key = ANY ($1) AND` + notifying + `
		AND NOT (c.anonymous AND c.created_at > clock_timestamp() - interval '5 seconds' AND NOT EXISTS (SELECT FROM overrides o WHERE o.customer_id = c.id))`

const customersOfClock = `
	SELECT c.id FROM customers c WHERE c.test_clock_id = (SELECT id FROM test_clocks WHERE key = $1) AND c.id > $2 AND` + notifying + ` ORDER BY c.id LIMIT $3`

// A plan may have millions of customers. If the plan has no thresholds, only its few customers with a cap
// are checked.
const (
	planNotifies = `
	SELECT EXISTS (SELECT FROM plans p JOIN plan_versions v ON v.plan_id = p.id WHERE p.key = $1 AND v.document @? '$.limits[*].notify')`
	customersOfPlan = `
	SELECT id FROM customers WHERE plan_id = (SELECT id FROM plans WHERE key = $1) AND archived_at IS NULL AND id > $2 ORDER BY id LIMIT $3`
	cappedOfPlan = `
	SELECT DISTINCT c.id FROM caps p JOIN customers c ON c.id = p.customer_id
	WHERE c.plan_id = (SELECT id FROM plans WHERE key = $1) AND c.archived_at IS NULL AND c.id > $2 ORDER BY c.id LIMIT $3`
)

// next finds the customers that the next changes concern.
func (t *Thresholds) next(ctx context.Context, e *edits) error {
	rows, _ := t.Store.Pool().Query(ctx, nextEdits, e.number, editsRows)
	type change struct {
		Number    int64
		Kind, Key string
	}
	changes, err := pgx.CollectRows(rows, pgx.RowToStructByPos[change])
	e.upTo = e.number
	var keys []string
	for _, c := range changes {
		of := ""
		switch c.Kind {
		case store.KindCustomer:
			keys = append(keys, c.Key)
		case store.KindPlan:
			of = customersOfPlan
			var notifies bool
			if err := t.Store.Pool().QueryRow(ctx, planNotifies, c.Key).Scan(&notifies); err != nil {
				return err
			}
			if !notifies {
				of = cappedOfPlan
			}
		case store.KindClock:
			of = customersOfClock
		}
		if of == "" {
			e.upTo, e.change = c.Number, c.Number
			continue
		}
		if len(keys) > 0 { // check the customers in keys first
			break
		}
		e.change = c.Number
		rows, _ = t.Store.Pool().Query(ctx, of, c.Key, e.after, editsRows)
		if e.customers, err = pgx.CollectRows(rows, pgx.RowTo[int64]); err != nil {
			return err
		}
		if n := len(e.customers); n == editsRows {
			e.last = e.customers[n-1]
		} else {
			e.upTo = c.Number
		}
		return nil
	}
	if err == nil && len(keys) > 0 {
		rows, _ = t.Store.Pool().Query(ctx, editedCustomers, keys)
		e.customers, err = pgx.CollectRows(rows, pgx.RowTo[int64])
	}
	return err
}

// ask makes the customers' counters raise the events of thresholds that they have reached.
func (t *Thresholds) ask(ctx context.Context, e *edits) error {
	if err := t.CatchUp(ctx, e.change); err != nil {
		return err
	}
	err := t.askOf(ctx, e.customers)
	if !t.skips(ctx, err) {
		return err
	}
	for _, customer := range e.customers { // a failure does not delay other customers
		if err := t.askOf(ctx, []int64{customer}); t.skips(ctx, err) {
			t.Log.Error("what a customer's limits have reached by an edit cannot be told; its next charge tells it", "customer_id", customer, "error", err)
		} else if err != nil {
			return err
		}
	}
	return nil
}

// passing lists the errors that mean that the engine, the database or a row is temporarily unavailable.
var passing = []error{session.ErrUnavailable, session.ErrBusy, session.ErrNoSession, session.ErrOutcomeUnknown, session.ErrStopped, session.ErrReadOnly}

// skips reports whether an error would recur if the check were repeated.
func (t *Thresholds) skips(ctx context.Context, err error) bool {
	return err != nil && ctx.Err() == nil && !postgres.Passing(err) && !slices.ContainsFunc(passing, func(p error) bool { return errors.Is(err, p) })
}

func (t *Thresholds) askOf(ctx context.Context, customers []int64) error {
	now, err := t.Now(ctx)
	if err != nil {
		return err
	}
	targets, err := upkeep.Unraised(ctx, t.Store.Pool(), customers, now, t.Targets)
	if err != nil || len(targets) == 0 {
		return err
	}
	return t.Notify(ctx, targets)
}
