package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// After its drain, a node ends within the sum of stopLimit and goodbye, even if its database does not answer.
const (
	// requestsLimit is the maximum time that requests in progress have to end. It is longer than a request may
	// wait.
	requestsLimit = 9500 * time.Millisecond
	// stopLimit is the maximum time in which all of these must end: requests in progress, operations waiting in
	// the engine, and background work.
	stopLimit = 10 * time.Second
	// goodbye is the additional time in which database connections and interrupted work must end.
	goodbye = 1500 * time.Millisecond
)

// run serves until ctx ends, and then stops the parts in order. It returns nil if ctx ended and all parts
// stopped without an error; otherwise it returns the error.
//
// The start begins with the steps that fail fastest: the settings, then the ports, then the database. Until all
// parts run, /livez returns 200, and all other requests return 503.
func run(ctx context.Context, s settings) (err error) {
	if err := s.check(); err != nil {
		return err
	}
	log := s.logger()
	front, err := openFront(ctx, &s, log)
	if err != nil {
		return err
	}
	served := false
	defer func() {
		front.close()
		if served && err == nil {
			log.Info("stopped")
		}
	}()
	db, err := openDatabase(ctx, &s.common, s.StartTimeout, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.close()) }()
	n, err := openNode(ctx, &s, db.url, front, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.close()) }()
	defer tuneMemory(ctx, newTuning(&s, log))()

	var key adminKey
	err = n.patiently(ctx, s.StartTimeout, func() (err error) {
		key, err = n.bootstrap(ctx, &s)
		return err
	})
	if err != nil {
		return err
	}
	if err := n.warm(ctx, &s); err != nil {
		return err
	}
	if err := n.announce(&s, key); err != nil {
		return err
	}
	n.serve()
	served = true
	log.Info("serving", "url", n.url, "data", s.place(), "version", version)
	if s.started != nil {
		s.started(n)
	}
	err = n.wait(ctx, db)
	n.stopServing(&s)
	return err
}

// wait blocks until the node must stop. It returns nil if ctx has ended, or the error that stops the node.
func (n *node) wait(ctx context.Context, db *database) error {
	select {
	case <-ctx.Done():
		return nil
	case err := <-n.front.failed:
		return err
	case <-db.gone():
		return fmt.Errorf("the embedded PostgreSQL is gone for good, see its last words in the log: %w", db.embedded.Err())
	}
}

// stopServing makes /readyz report stopping, and each response close its connection. It waits for DrainDelay, so
// that load balancers notice. Then it closes the listeners and waits for the requests in progress.
func (n *node) stopServing(s *settings) {
	n.front.drain()
	n.stopping.Store(true)
	n.log.Info("stopping")
	if s.DrainDelay > 0 {
		pause := time.Sleep // a second signal ends the process
		if s.drain != nil {
			pause = s.drain
		}
		pause(s.DrainDelay)
	}
	n.stopBy = time.Now().Add(n.atLeast(stopLimit))
	n.pages.Stop() // open pages would keep their connections busy
	ctx, cancel := context.WithTimeout(context.Background(), n.atLeast(requestsLimit))
	defer cancel()
	if err := n.front.shutdown(ctx); err != nil {
		n.log.Warn("requests did not end in time and were cut off", "error", err)
	}
}
