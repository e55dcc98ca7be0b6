package pgtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"syscall"
	"testing"
	"time"

	"quotad/internal/postgres/embedded"
	"quotad/internal/testkit"
)

// Option changes a private server.
type Option func(*instanceOptions)

type instanceOptions struct {
	settings map[string]string
	bare     bool
	clock    bool
}

// WithSettings adds settings of the server, such as max_connections.
func WithSettings(settings map[string]string) Option {
	return func(o *instanceOptions) { maps.Copy(o.settings, settings) }
}

// WithoutMigrations leaves the database empty.
func WithoutMigrations() Option { return func(o *instanceOptions) { o.bare = true } }

// Instance is a private server of one test, durable as in production, and
// supervised: what the test kills comes back by itself.
type Instance struct {
	t    testing.TB
	opts embedded.Options
	e    *embedded.Server // nil between Stop and Start
}

// Server starts a private server, which goes with the test. Its database
// quotad has the schema.
func Server(t testing.TB, options ...Option) *Instance {
	t.Helper()
	o := instanceOptions{settings: map[string]string{"shared_buffers": "64MB", "min_wal_size": "32MB"}}
	for _, option := range options {
		option(&o)
	}
	dir, err := makeDir()
	if err != nil {
		t.Fatal(err)
	}
	s := &Instance{t: t, opts: embedded.Options{
		DataDir: dir, Logger: quiet, Settings: o.settings,
	}}
	t.Cleanup(s.cleanup)
	if err := copyCluster(dir, !o.bare); err != nil {
		t.Fatal(err)
	}
	if o.clock {
		setClock(t, dir, 0)
		s.opts.BinDir = clockPrograms(t, dir)
	}
	s.Start()
	return s
}

// URL is the database quotad as its owner; the same through all restarts.
func (s *Instance) URL() string { return s.e.URL() }

// AdminURL is the maintenance database as superuser.
func (s *Instance) AdminURL() string { return s.e.AdminURL() }

// Embedded is the server's handle; another after Start.
func (s *Instance) Embedded() *embedded.Server { return s.e }

// DataDir is the directory of the server.
func (s *Instance) DataDir() string { return s.opts.DataDir }

// Crash stops the server at once, as pg_ctl's immediate mode does (SIGQUIT):
// what is not on the disk is lost, and recovery follows. It returns when the
// postmaster is gone; the supervisor starts another. WaitReady waits for it.
func (s *Instance) Crash() { s.t.Helper(); s.end(syscall.SIGQUIT) }

// Kill is kill -9 of the postmaster; see Crash.
func (s *Instance) Kill() { s.t.Helper(); s.end(syscall.SIGKILL) }

func (s *Instance) end(sig syscall.Signal) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	pid := s.e.PID()
	for ; pid == 0; pid = s.e.PID() { // it may be on its way up from an earlier blow
		s.pause(ctx)
	}
	if err := syscall.Kill(pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		s.t.Fatalf("kill postgres: %v", err)
	}
	for s.e.PID() == pid {
		s.pause(ctx)
	}
}

// WaitReady returns when the server answers a statement, and its supervisor
// knows that it does.
func (s *Instance) WaitReady() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	for s.e.PID() == 0 || execute(s.URL(), "SELECT 1") != nil {
		s.pause(ctx)
	}
}

// pause is one beat of polling; the test fails when ctx is over.
func (s *Instance) pause(ctx context.Context) {
	s.t.Helper()
	select {
	case <-ctx.Done():
		s.t.Fatal("the private server did not do as told in time")
	case <-s.e.Done():
		s.t.Fatalf("the private server is gone: %v", s.e.Err())
	case <-time.After(5 * time.Millisecond):
	}
}

// Stop shuts the server down for an outage that lasts until Start.
func (s *Instance) Stop() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	if err := s.e.Stop(ctx); err != nil {
		s.t.Fatalf("stop the private server: %v", err)
	}
}

// Start starts the server on the same data, at the same URL.
func (s *Instance) Start() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	e, err := embedded.Start(ctx, s.opts)
	if err != nil {
		s.t.Fatalf("start a private server: %v", err)
	}
	s.e = e
}

// Restart is Stop and Start.
func (s *Instance) Restart() { s.t.Helper(); s.Stop(); s.Start() }

// cleanup stops the server, and removes it unless the test failed.
func (s *Instance) cleanup() {
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	if s.e != nil {
		if err := s.e.Stop(ctx); err != nil {
			s.t.Errorf("stop the private server: %v", err)
		}
	}
	if s.t.Failed() && s.e != nil {
		keep(s.opts.DataDir, s.e)
		s.t.Logf("open the server's database with: psql '%s'", s.URL())
		return
	}
	if err := removeDir(s.opts.DataDir); err != nil {
		s.t.Errorf("%v", fmt.Errorf("remove the private server: %w", err))
	}
}
