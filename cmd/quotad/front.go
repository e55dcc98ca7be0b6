package main

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"quotad/internal/api"
	"quotad/internal/api/serve"
	"quotad/internal/fastpath"
)

// front owns the listeners and the handlers behind them. At first the handlers say only that
// the process lives. After use they are those of the API.
type front struct {
	log     *slog.Logger
	urls    []string // of the listeners, the main one's first, for a client on this machine
	servers []*fastpath.Server
	main    atomic.Pointer[http.Handler]
	metrics atomic.Pointer[http.Handler]
	failed  chan error // a listener broke
	running sync.WaitGroup
}

// openFront takes the ports and begins to answer on them.
func openFront(ctx context.Context, s *settings, log *slog.Logger) (*front, error) {
	f := &front{log: log, failed: make(chan error, 2)}
	f.use(http.HandlerFunc(starting), http.HandlerFunc(starting))
	config, err := s.tlsConfig()
	if err != nil {
		return nil, err
	}
	listener, err := listen(ctx, "listen", s.Listen, config)
	if err != nil {
		return nil, err
	}
	f.serve(listener, &f.main, config != nil)
	if s.MetricsListen != "" {
		// This listener has no TLS: metrics hold no secrets, and their scrapers are inside the
		// network.
		listener, err := listen(ctx, "metrics-listen", s.MetricsListen, nil)
		if err != nil {
			f.close()
			return nil, err
		}
		f.serve(listener, &f.metrics, false)
	}
	return f, nil
}

// serve begins to answer requests on a listener. Each request goes to the handler that the
// pointer holds at that moment.
func (f *front) serve(listener net.Listener, handler *atomic.Pointer[http.Handler], secure bool) {
	f.urls = append(f.urls, localURL(listener.Addr(), secure))
	server := api.NewHTTPServer(serve.Recovered(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		(*handler.Load()).ServeHTTP(w, r)
	}), f.log), time.Now)
	// net/http logs single connections that their clients broke. That is worth no more than
	// debug.
	server.ErrorLog = slog.NewLogLogger(f.log.Handler(), slog.LevelDebug)
	f.servers = append(f.servers, server)
	f.running.Go(func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			f.failed <- fmt.Errorf("serving %s: %w", listener.Addr(), err)
		}
	})
}

// use replaces both handlers. Requests under way keep the handler with which they began.
func (f *front) use(main, metrics http.Handler) {
	f.main.Store(&main)
	f.metrics.Store(&metrics)
}

// shutdown closes the listeners and waits for requests under way, until ctx ends.
func (f *front) shutdown(ctx context.Context) error {
	var all []error
	for _, server := range f.servers {
		all = append(all, server.Shutdown(ctx))
	}
	f.close()
	return errors.Join(all...)
}

// close cuts off the connections that are left, and waits until the servers have ended.
func (f *front) close() {
	for _, server := range f.servers {
		_ = server.Close()
	}
	f.running.Wait()
}

// starting answers requests while the database is started, reached or migrated. That may take
// minutes. /livez is ok meanwhile, so that no orchestrator kills the process.
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

func listen(ctx context.Context, flag, address string, config *tls.Config) (net.Listener, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("--%s: %s is in use, perhaps by another quotad: stop that program, or choose another address", flag, address)
	case errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("--%s: no permission to listen on %s: choose a port from 1024 on", flag, address)
	case err != nil:
		return nil, fmt.Errorf("--%s: %w", flag, err)
	}
	if config != nil {
		return fastpath.TLSListener(listener, config), nil
	}
	return fastpath.Listener(listener), nil
}

func (s *settings) tlsConfig() (*tls.Config, error) {
	if s.TLSCert == "" {
		return nil, nil //nolint:nilnil // no TLS is wanted
	}
	chain, err := readPEM("tls-cert", s.TLSCert, "CERTIFICATE")
	if err != nil {
		return nil, err
	}
	key, err := readPEM("tls-key", s.TLSKey, "PRIVATE KEY")
	if err != nil {
		return nil, err
	}
	certificate, err := tls.X509KeyPair(chain, key)
	if err != nil {
		return nil, badSetting("tls-cert", "%s with --tls-key=%s: %s", s.TLSCert, s.TLSKey, strings.TrimPrefix(err.Error(), "tls: "))
	}
	return &tls.Config{
		Certificates: []tls.Certificate{certificate},
		MinVersion:   tls.VersionTLS12,
		NextProtos:   []string{"h2", "http/1.1"},
	}, nil
}

// readPEM reads a file that has at least one PEM block whose type ends in want.
func readPEM(flag, path, want string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, badSetting(flag, "%w", err)
	}
	for rest := text; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return nil, badSetting(flag, "%s has no %s in PEM", path, strings.ToLower(want))
		}
		if strings.HasSuffix(block.Type, want) {
			return text, nil
		}
	}
}

// localURL is how a client on this machine reaches a listener.
func localURL(address net.Addr, secure bool) string {
	scheme := "http"
	if secure {
		scheme = "https"
	}
	tcp, ok := address.(*net.TCPAddr)
	if !ok {
		return scheme + "://" + address.String()
	}
	host := tcp.IP.String()
	if tcp.IP.IsUnspecified() {
		host = "127.0.0.1"
	}
	return scheme + "://" + net.JoinHostPort(host, fmt.Sprint(tcp.Port))
}
