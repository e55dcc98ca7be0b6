package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
)

// A round is one run of the handler and one of the row, in operations a second. What a
// row's operations are in hits is its ratio's business.
type round struct {
	Handler float64 `json:"handler"`
	Row     float64 `json:"row"`
}

// A result is what came of a row.
type result struct {
	Name        string    `json:"name"`
	Connections int       `json:"connections"`
	Ratio       spread    `json:"ratio"`    // of hits a second to the handler's requests a second
	Hits        spread    `json:"hits"`     // a second
	Handler     spread    `json:"handler"`  // requests a second
	WarmUps     []float64 `json:"warm_ups"` // operations a second, before the rounds
	Rounds      []round   `json:"rounds"`
	Cost        *cost     `json:"cost,omitempty"`
	Latency     *latency  `json:"latency,omitempty"`
	Failed      string    `json:"failed,omitempty"` // why; without a ratio the row says nothing
}

// A match is a row and the handler it is measured beside, both running.
type match struct {
	row, single *row
	subject     []string // addresses of what is measured
	handler     []string // the handler's, as many
	failing     bool     // what is asked for is refused, by both
}

// measure plays rounds of a row.
func (b *bench) measure(ctx context.Context, r *row, rounds int) (got result, err error) {
	if err := b.service.scale(ctx, r.nodeCount()); err != nil {
		return got, err
	}
	if err := b.makeSet(ctx, r.set); err != nil {
		return got, err
	}
	if err := b.meetAll(ctx, r.set); err != nil {
		return got, err
	}
	m := &match{row: r, single: r.single()}
	answer, err := b.typical(ctx, m)
	if err != nil {
		return got, err
	}
	handler, address, err := b.startShell(ctx, answer, "", "")
	if err != nil {
		return got, err
	}
	defer func() { err = errors.Join(err, handler.stop()) }()
	stop, err := b.startSubject(ctx, m, answer)
	if err != nil {
		return got, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	for range m.subject {
		m.handler = append(m.handler, address)
	}
	got, err = b.play(ctx, m, rounds)
	b.lookAgain(r)
	return got, err
}

// typical is quotad's answer to the row's request, of one hit.
func (b *bench) typical(ctx context.Context, m *match) (*answer, error) {
	var got *answer
	for range 2 { // the first refusal is the database's, the next ones are from memory
		var err error
		t := templateOf(m.single, b.service.backend, b.runID())
		if got, err = ask(ctx, b.service.client, b.service.nodes[0].address, t); err != nil {
			return nil, err
		}
	}
	m.failing = got.Status >= 400
	if m.failing != (m.row.want == fromMemory || m.row.want == refused) {
		return nil, fmt.Errorf("a hit is answered %d: %s", got.Status, got.Body)
	}
	return got, nil
}

// startSubject fills in what is measured: quotad's nodes, or a shell.
func (b *bench) startSubject(ctx context.Context, m *match, a *answer) (stop func() error, err error) {
	if m.row.shell != "" {
		return b.startContrast(ctx, m, a)
	}
	for _, n := range b.service.nodes {
		m.subject = append(m.subject, n.address)
	}
	return func() error { return nil }, nil
}

// runID sets the ids of a run apart; it always has the same width.
func (b *bench) runID() string {
	b.runs++
	return "bench-" + strconv.Itoa(firstNumber+b.runs)
}

// play runs handler and row in turn, each first every other time.
func (b *bench) play(ctx context.Context, m *match, rounds int) (got result, err error) {
	if _, err := b.load(ctx, m, m.single, m.handler, time.Second); err != nil {
		return got, err
	}
	warmUps, err := b.warmRow(ctx, m)
	if err != nil {
		return got, err
	}
	before, err := b.snapshot(ctx)
	if err != nil {
		return got, err
	}
	got = result{Name: m.row.name, Connections: m.row.connections(), WarmUps: warmUps}
	var all closed
	for i := range rounds {
		var handler, subject closed
		steps := []func() error{
			func() (err error) { handler, err = b.load(ctx, m, m.single, m.handler, b.each); return err },
			func() (err error) { subject, err = b.load(ctx, m, m.row, m.subject, b.each); return err },
		}
		for j := range steps {
			if err := errors.Join(steps[(i+j)%2](), pause(ctx)); err != nil {
				return got, err
			}
		}
		all = all.beside(subject)
		got.Rounds = append(got.Rounds, round{Handler: handler.rate(), Row: subject.rate()})
	}
	after, err := b.snapshot(ctx)
	if err != nil {
		return got, err
	}
	if m.row.shell == "" {
		cut := (rounds + 1) * m.row.connections()
		if err := m.row.want.check(before.metrics, after.metrics, cut, m.row.hits()); err != nil {
			return got, err
		}
		got.Cost = costOf(before, after, all, m.row)
	}
	got.sum(m.row)
	if m.row.latency && !b.short { // the gate compares ratios
		got.Latency, err = b.compareLatency(ctx, m, got.Hits.Median/2, latencyTimes*rounds)
	}
	return got, err
}

// sum fills in what the rounds came to.
func (got *result) sum(r *row) {
	var ratios, hits, handler []float64
	for _, round := range got.Rounds {
		h := round.Row * float64(r.hits())
		ratios, hits, handler = append(ratios, per(h, round.Handler)), append(hits, h), append(handler, round.Handler)
	}
	got.Ratio, got.Hits, got.Handler = spreadOf(ratios), spreadOf(hits), spreadOf(handler)
}

// load puts a row's load on addresses, which share its connections.
func (b *bench) load(ctx context.Context, m *match, r *row, addresses []string, d time.Duration) (closed, error) {
	conns := r.connections() / len(addresses)
	parts := make([]closed, len(addresses))
	var all errgroup.Group
	for i, address := range addresses {
		t := templateOf(r, b.service.backend, b.runID())
		if r.load.reserve {
			b.seed++
			part := &pairs{template: t, address: address, key: b.service.backend, conns: conns, seed: b.seed}
			all.Go(func() (err error) { parts[i], err = part.run(ctx, d); return err })
			continue
		}
		command, err := b.wrkCommand(strconv.Itoa(i), address, conns, d, t)
		if err != nil {
			return closed{}, errors.Join(err, all.Wait())
		}
		all.Go(func() (err error) { parts[i], err = command.run(ctx); return err })
	}
	if err := all.Wait(); err != nil {
		return closed{}, err
	}
	sum := parts[0]
	for _, part := range parts[1:] {
		sum = sum.beside(part)
	}
	return sum, m.checkStatuses(sum)
}

// few is the share of answers that may be of another kind than the row is about.
const few = 0.001

var errAnswers = errors.New("answers are not what the row is about")

// checkStatuses looks at what the load maker has seen. Where nothing is to be refused,
// nothing is.
func (m *match) checkStatuses(c closed) error {
	good := c.statuses == 0
	if m.failing {
		good = float64(c.operations-c.statuses) <= few*float64(c.operations)
	}
	if !good {
		return fmt.Errorf("%w: %d of %d were no success", errAnswers, c.statuses, c.operations)
	}
	return nil
}

// A row runs before its first round until it is steady: two runs in succession are this
// close, as a share of the faster one. On a restless machine they may never be, so there
// is an end to it.
const (
	maxWarmUps = 4
	steadyGap  = 0.05
)

// warmUp repeats a run until it is steady, and returns what each came to, operations a second.
func warmUp(run func() (rate float64, err error)) (rates []float64, err error) {
	for len(rates) < maxWarmUps && !steady(rates) {
		rate, err := run()
		if err != nil {
			return rates, err
		}
		rates = append(rates, rate)
	}
	return rates, nil
}

func steady(rates []float64) bool {
	if len(rates) < 2 {
		return false
	}
	last, one := rates[len(rates)-1], rates[len(rates)-2]
	return math.Abs(last-one) < steadyGap*max(last, one)
}

// warmRow runs the row until it is steady.
func (b *bench) warmRow(ctx context.Context, m *match) ([]float64, error) {
	return warmUp(func() (float64, error) {
		got, err := b.load(ctx, m, m.row, m.subject, b.each)
		if err != nil {
			return 0, err
		}
		return got.rate(), pause(ctx)
	})
}
