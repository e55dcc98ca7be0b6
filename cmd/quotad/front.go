package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"quotad/internal/api"
	"quotad/internal/api/serve"
	"quotad/internal/fastpath"
)

// front owns the listeners and their handlers. Before use is called, the handlers report only that the process
// is alive. After use, they serve the API.
type front struct {
	log     *slog.Logger
	urls    []string // URLs of the listeners for clients on this machine, the main listener first
	servers []*fastpath.Server
	main    atomic.Pointer[http.Handler]
	metrics atomic.Pointer[http.Handler]
	ending  atomic.Bool // each response closes its connection
	failed  chan error  // receives the error of a listener that failed
	running sync.WaitGroup
	atLeast func(time.Duration) time.Duration // settings.atLeast
}

// openFront opens the ports and starts to serve requests on them.
func openFront(ctx context.Context, s *settings, log *slog.Logger) (*front, error) {
	f := &front{log: log, failed: make(chan error, 2), atLeast: s.atLeast}
	f.use(http.HandlerFunc(starting), http.HandlerFunc(starting))
	config, err := s.tlsConfig(log)
	if err != nil {
		return nil, err
	}
	listener, err := listen(ctx, "listen", s.Listen, config, log)
	if err != nil {
		return nil, err
	}
	f.serve(listener, &f.main, config != nil)
	if s.MetricsListen != "" {
		// The metrics listener has no TLS, because metrics contain no secrets and are scraped from inside the
		// network.
		listener, err := listen(ctx, "metrics-listen", s.MetricsListen, nil, log)
		if err != nil {
			f.close()
			return nil, err
		}
		f.serve(listener, &f.metrics, false)
	}
	return f, nil
}

// serve starts to serve requests on a listener. Each request is served by the handler to which the pointer
// refers at that moment.
func (f *front) serve(listener net.Listener, handler *atomic.Pointer[http.Handler], secure bool) {
	f.urls = append(f.urls, localURL(listener.Addr().String(), secure))
	server := api.NewHTTPServer(serve.Recovered(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		serve.Identify(w, r)
		if f.ending.Load() {
			w.Header()["Connection"] = connectionClose
		}
		(*handler.Load()).ServeHTTP(w, r)
	}), f.log), time.Now)
	// net/http logs errors of single connections that their clients broke. These errors deserve only the debug
	// level.
	server.ErrorLog = slog.NewLogLogger(f.log.Handler(), slog.LevelDebug)
	f.lengthen(server.Server)
	f.servers = append(f.servers, server)
	f.running.Go(func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			f.failed <- fmt.Errorf("serving %s: %w", listener.Addr(), err)
		}
	})
}

// lengthen applies atLeast to the server's timeouts for clients. The write timeout covers the time to read the
// request and the time to decide it.
func (f *front) lengthen(server *http.Server) {
	server.ReadHeaderTimeout, server.ReadTimeout = f.atLeast(server.ReadHeaderTimeout), f.atLeast(server.ReadTimeout)
	write := max(server.WriteTimeout, 3*f.atLeast(0))
	server.WriteTimeout, server.HTTP2.WriteByteTimeout = write, write
}

// connectionClose is the value of the Connection header in responses of a draining node.
var connectionClose = []string{"close"}

// drain makes each further response close its connection. The listeners stay open. Otherwise a TCP proxy, which
// does not read requests, would keep clients on this node until the end of the process cuts them off.
func (f *front) drain() { f.ending.Store(true) }

// use replaces both handlers. A request in progress keeps the handler with which it began.
func (f *front) use(main, metrics http.Handler) {
	f.main.Store(&main)
	f.metrics.Store(&metrics)
}

// shutdown closes the listeners and waits for the requests in progress until ctx ends.
func (f *front) shutdown(ctx context.Context) error {
	var all []error
	for _, server := range f.servers {
		all = append(all, server.Shutdown(ctx))
	}
	f.close()
	return errors.Join(all...)
}

// close cuts off the remaining connections and waits until the servers have ended.
func (f *front) close() {
	for _, server := range f.servers {
		_ = server.Close()
	}
	f.running.Wait()
}

// starting serves requests while the database is started, reached or migrated, which may take minutes. /livez
// returns 200 during this time, so that no orchestrator kills the process.
func starting(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	if r.URL.Path == "/livez" {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"status":"ok"}`))
		return
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("Retry-After", "1")
	w.WriteHeader(http.StatusServiceUnavailable)
	_, _ = w.Write([]byte(`{"type":"/problems/not-ready","title":"Not ready","status":503,"detail":"quotad is starting; nothing was charged or stored"}`))
}

func listen(ctx context.Context, flag, address string, config *tls.Config, log *slog.Logger) (net.Listener, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("--%s: %s is in use, perhaps by another quotad: stop that program, or choose another address", flag, address)
	case errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("--%s: no permission to listen on %s: choose a port from 1024 on", flag, address)
	case err != nil:
		return nil, fmt.Errorf("--%s: %w", flag, err)
	}
	listener = heard{listener, log}
	if config != nil {
		return fastpath.TLSListener(listener, config), nil
	}
	return fastpath.Listener(listener), nil
}

// heard is a listener that logs a warning when a connection cannot be accepted, for example because no file
// descriptor is free. net/http retries in this case, but logs the error only at the debug level.
type heard struct {
	net.Listener
	log *slog.Logger
}

// Accept implements net.Listener.
func (l heard) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil && !errors.Is(err, net.ErrClosed) {
		l.log.Warn("connections cannot be accepted; it is tried again", "address", l.Addr().String(), "error", err)
	}
	return conn, err
}

func (s *settings) tlsConfig(log *slog.Logger) (*tls.Config, error) {
	if s.TLSCert == "" {
		return nil, nil //nolint:nilnil // no TLS is wanted
	}
	c, err := newCertificate(s.TLSCert, s.TLSKey, log)
	if err != nil {
		return nil, err
	}
	return &tls.Config{GetCertificate: c.get, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}, nil
}

// localURL returns the URL at which a client on this machine reaches a listener's address. The address must have
// a port.
func localURL(address string, secure bool) string {
	scheme := "http"
	if secure {
		scheme = "https"
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return scheme + "://" + address
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return scheme + "://" + net.JoinHostPort(host, port)
}
