package service

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"quotad/client"
	"quotad/internal/api/respond"
	"quotad/internal/billing/accounts"
	"quotad/internal/plans"
	"quotad/internal/postgres"
	"quotad/internal/quota"
	"quotad/internal/quota/model"
)

const (
	// fullestShown is the number of customers that are shown.
	fullestShown = 10
	// fullestJudged is the number of counters that are judged, and fullestAtOnce is the number of counters in
	// one step.
	fullestJudged, fullestAtOnce = 5000, 500
	// fullestAgain is the number of counters of the last search that are judged again. If there are too many
	// counters for one search, the next search judges others besides them.
	fullestAgain = 100
)

// readOverview reads all parts and leaves out parts that fail. It needs at most four fifths of a request's time.
// Its error is that of the database's clock.
func (s *Room) readOverview(ctx context.Context) (body client.Overview, err error) {
	now, err := s.Instant(ctx)
	if err != nil {
		return body, err
	}
	body = client.Overview{At: respond.Time(now), Failed: []string{}}
	tenth := s.Deadline / 10
	part := func(name string, limit time.Duration, read func(context.Context) error) (ok bool) {
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		err := read(ctx)
		if err != nil {
			s.Log.Warn("part of the overview cannot be read", "part", name, "error", err)
			body.Failed = append(body.Failed, name)
		}
		return err == nil
	}
	var nodes []plans.Node
	nodesRead := part(partNodes, tenth, func(ctx context.Context) (err error) {
		nodes, err = s.Store.Nodes(ctx)
		return err
	})
	lately := latelyAt(now, nodes)
	var decided []plans.NodeDecided
	if part(partDecisions, tenth, func(ctx context.Context) (err error) {
		decided, err = s.Store.DecidedSince(ctx, lately.recent, lately.hour, lately.day)
		return err
	}) {
		body.Decisions = lately.decisions(decided)
	}
	if nodesRead {
		body.Nodes = lately.nodes(now, nodes, decided)
	}
	part(partDatabase, 2*tenth, func(ctx context.Context) (err error) {
		body.Database, err = s.readDatabase(ctx)
		return err
	})
	part(partFullest, 4*tenth, func(ctx context.Context) (err error) {
		body.Fullest, err = s.keptFullest(ctx, now)
		return err
	})
	var nameless []accounts.Nameless
	part(partHeld, tenth, func(ctx context.Context) (err error) {
		nameless, err = s.Accounts.Nameless(ctx)
		return err
	})
	body.Books = s.books(nodes)
	body.Concerns = append(concerns(&body, now), heldConcerns(nameless)...)
	return body, nil
}

// lately contains the periods for which decisions are reported: the starts of minutes, µs.
type lately struct{ recent, hour, day, seconds int64 }

// latelyAt returns the recent periods that the overview shows. Each period ends at the time of the nodes' last
// reports.
func latelyAt(now int64, nodes []plans.Node) lately {
	const minute, hour = int64(60e6), int64(3600e6)
	this, until := now-now%minute, int64(0)
	for i := range nodes {
		until = max(until, nodes[i].SeenAt)
	}
	if until < now-silentAfter || until > now {
		until = now
	}
	l := lately{recent: this - minute, hour: this - hour, day: this - 24*hour}
	l.seconds = max(1, (until-l.recent)/1e6)
	return l
}

// perSecond returns the average of recent as a decimal with one digit, rounded down.
func (l *lately) perSecond(d plans.Decided) string {
	tenths := (d.Admitted + d.Refused) * 10 / l.seconds
	return fmt.Sprintf("%d.%d", tenths/10, tenths%10)
}

func (l *lately) decisions(decided []plans.NodeDecided) *client.Decisions {
	var all plans.NodeDecided
	add := func(to *plans.Decided, d plans.Decided) {
		to.Admitted, to.Refused = to.Admitted+d.Admitted, to.Refused+d.Refused
	}
	for i := range decided {
		add(&all.Recent, decided[i].Recent)
		add(&all.Hour, decided[i].Hour)
		add(&all.Day, decided[i].Day)
	}
	show := func(from int64, d plans.Decided) client.Decided {
		return client.Decided{From: respond.Time(from), Admitted: d.Admitted, Refused: d.Refused}
	}
	return &client.Decisions{
		PerSecond: l.perSecond(all.Recent), Seconds: l.seconds,
		Recent: show(l.recent, all.Recent), Hour: show(l.hour, all.Hour), Day: show(l.day, all.Day),
	}
}

func (l *lately) nodes(now int64, nodes []plans.Node, decided []plans.NodeDecided) []client.Node {
	recent := make(map[string]plans.Decided, len(decided))
	for i := range decided {
		recent[decided[i].Node] = decided[i].Recent
	}
	shown := make([]client.Node, len(nodes))
	for i, n := range nodes {
		shown[i] = client.Node{
			Name: n.Name, Version: n.Version, State: n.State, Reason: n.Reason,
			StartedAt: respond.Time(n.StartedAt), SeenAt: respond.Time(n.SeenAt), PerSecond: l.perSecond(recent[n.ID]),
		}
		if n.SeenAt < now-silentAfter {
			shown[i].State, shown[i].Reason = stateSilent, ""
		}
	}
	return shown
}

func (s *Room) readDatabase(ctx context.Context) (*client.Database, error) {
	d, err := postgres.StandingOf(ctx, s.Store.Pool())
	if err != nil {
		return nil, err
	}
	body := &client.Database{
		Version: d.Version, SizeBytes: d.Bytes, Connections: d.Connections, MaxConnections: d.MaxConnections,
		ReadOnly: d.InRecovery, Replicas: d.Replicas, ReplicaLagBytes: d.ReplicaLag,
	}
	if d.OldestTransaction != nil {
		at := d.OldestTransaction.UTC()
		body.OldestTransactionAt = &at
	}
	return body, nil
}

// books returns the result of the nodes' newest check of the books, and the findings of this node's worker.
func (s *Room) books(nodes []plans.Node) client.Books {
	body := client.Books{Disagreeing: []string{}}
	body.BlockedCustomers, _ = s.Closing.Standing()
	body.OverdueInvoices = s.Closing.Overdue()
	at, disagreeing := s.Checked() // the rows of the other nodes contain their results
	for i := range nodes {
		if n := &nodes[i]; n.CheckedAt != nil && (at == nil || *n.CheckedAt > *at) {
			at, disagreeing = n.CheckedAt, n.Disagreeing
		}
	}
	body.CheckedAt, body.Disagreeing = respond.InstantOrNull(at), append(body.Disagreeing, disagreeing...)
	return body
}

// keptFullest returns the fullest customers of the last search. The caller holds the lock.
func (s *Room) keptFullest(ctx context.Context, now int64) (*client.Fullest, error) {
	o := &s.overviews
	began := s.Wall()
	if !began.After(o.fullestUntil) {
		return o.fullest, o.fullestErr
	}
	o.fullest, o.fullestErr = s.readFullest(ctx, now)
	ended, rest := s.Wall(), fullestRest
	if o.fullestErr == nil {
		rest = max(rest, 20*ended.Sub(began))
	}
	o.fullestUntil = ended.Add(rest)
	return o.fullest, o.fullestErr
}

// readFullest finds and judges counters for about three quarters of ctx's time. It leaves out counters for which
// no time remains. The caller holds the lock of overviews.
func (s *Room) readFullest(ctx context.Context, now int64) (*client.Fullest, error) {
	fifth := s.Deadline / 5
	walking, cancel := context.WithTimeout(ctx, fifth)
	latest, err := s.Engine.Latest(walking, fullestJudged)
	cancel()
	if err != nil {
		return nil, err
	}
	body := &client.Fullest{AsOf: respond.Time(now), Counters: latest.Passed, Complete: latest.All && latest.Passed <= fullestJudged}
	judging, cancel := context.WithTimeout(ctx, fifth*3/4)
	defer cancel()
	all := latest.Keys
	if again := s.overviews.fullestKeys; !body.Complete {
		all = append(slices.Clone(again), slices.DeleteFunc(all, func(k model.CounterKey) bool { return slices.Contains(again, k) })...)
	}
	fullest := make(map[int64]quota.Full) // keyed by customer
	for keys := range slices.Chunk(all, fullestAtOnce) {
		found, err := s.fullness(judging, keys)
		if err != nil && judging.Err() != nil && body.Judged > 0 {
			body.Complete = false
			break
		}
		if err != nil {
			return nil, err
		}
		body.Judged += len(keys)
		for _, f := range found {
			if known, there := fullest[f.Customer]; !there || f.Compare(&known) > 0 {
				fullest[f.Customer] = f
			}
		}
	}
	most := slices.SortedFunc(maps.Values(fullest), func(a, b quota.Full) int {
		return cmp.Or(b.Compare(&a), cmp.Compare(a.Customer, b.Customer))
	})
	s.overviews.fullestKeys = nil
	for _, f := range most[:min(len(most), fullestAgain)] {
		s.overviews.fullestKeys = append(s.overviews.fullestKeys, model.CounterKey{Customer: f.Customer, Meter: f.Meter})
	}
	body.Items, err = s.showFull(ctx, most[:min(len(most), fullestShown)])
	return body, err
}

func (s *Room) fullness(ctx context.Context, keys []model.CounterKey) ([]quota.Full, error) {
	targets, err := s.Catalog.Targets(ctx, keys)
	if err != nil {
		return nil, err
	}
	return s.Engine.Fullness(ctx, targets)
}

// showFull adds the names of customers and meters. It leaves out customers that were deleted meanwhile.
func (s *Room) showFull(ctx context.Context, full []quota.Full) ([]client.Full, error) {
	var ids []int64
	var meters []int32
	for i := range full {
		ids, meters = append(ids, full[i].Customer), append(meters, full[i].Meter)
	}
	customers, err := s.Store.CustomersByID(ctx, ids)
	if err != nil {
		return nil, err
	}
	keys, err := s.Store.MeterKeys(ctx, meters)
	if err != nil {
		return nil, err
	}
	items := []client.Full{}
	for i := range full {
		f := &full[i]
		at := slices.IndexFunc(customers, func(c *plans.Customer) bool { return c.ID == f.Customer })
		if at >= 0 {
			items = append(items, client.Full{
				Customer: customers[at].Key, Name: customers[at].Name, Meter: keys[f.Meter], Limit: f.Limit.Name,
				Mode: f.Limit.Mode.String(), Used: f.Used, Of: f.Of, Percent: f.Percent(),
			})
		}
	}
	return items, nil
}
