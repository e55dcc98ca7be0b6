package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"quotad/internal/postgres"
	"quotad/internal/postgres/embedded"
)

const (
	readyWait   = 2 * time.Minute  // for a quotad to start, its server included
	requestWait = 30 * time.Second // for one answer, and for one statement of ours but the largest
)

// A node is a running quotad.
type node struct {
	*child
	address string
}

// service is quotad under measurement: nodes on one database, of which the first has it
// embedded.
type service struct {
	binary  string
	flags   []string
	dir     string // of data and logs
	admin   string // secret of the admin key
	backend string // of the key that loads use
	nodes   []*node
	db      *pgx.Conn
	client  *http.Client
}

func newService(binary, dir string, flags []string) *service {
	return &service{
		binary: binary, dir: dir, flags: flags, admin: "bench-" + rand.Text(),
		client: &http.Client{Timeout: requestWait},
	}
}

func (s *service) dataDir() string { return filepath.Join(s.dir, "data") }

// start starts the first node, and makes what all rows need.
func (s *service) start(ctx context.Context) error {
	if err := s.startFirst(ctx); err != nil {
		return err
	}
	if err := s.put(ctx, "/v1/meters/"+meter, `{"unit":"request"}`); err != nil {
		return err
	}
	answer, err := s.call(ctx, "POST", "/v1/keys", `{"name":"bench","scope":"backend"}`)
	if err != nil {
		return err
	}
	var key struct{ Secret string }
	if err := json.Unmarshal(answer, &key); err != nil || key.Secret == "" {
		return fmt.Errorf("no secret of a key in %s (%w)", answer, err)
	}
	s.backend = key.Secret
	return nil
}

// startFirst starts the node with the embedded server on its data, new or not.
func (s *service) startFirst(ctx context.Context) error {
	if err := s.startNode(ctx, "--data-dir="+s.dataDir()); err != nil {
		return err
	}
	url, running := embedded.RunningURL(s.dataDir())
	if !running {
		return errors.New("quotad serves, but its embedded server has no socket")
	}
	var err error
	if s.db, err = postgres.Connect(ctx, url, nil); err != nil {
		return fmt.Errorf("connect to the embedded server: %w", err)
	}
	return nil
}

// scale has n nodes serve.
func (s *service) scale(ctx context.Context, n int) error {
	for len(s.nodes) > n {
		last := s.nodes[len(s.nodes)-1]
		s.nodes = s.nodes[:len(s.nodes)-1]
		if err := last.stop(); err != nil {
			return err
		}
	}
	for len(s.nodes) < n {
		url, _ := embedded.RunningURL(s.dataDir())
		if err := s.startNode(ctx, "--database-url="+url); err != nil {
			return err
		}
	}
	return nil
}

// restart has one node, of no memories.
func (s *service) restart(ctx context.Context) error {
	if err := s.stop(); err != nil {
		return err
	}
	return s.startFirst(ctx)
}

// stop ends all nodes, the embedded server with the first one.
func (s *service) stop() error {
	if s.db != nil {
		ctx, cancel := context.WithTimeout(context.Background(), requestWait)
		defer cancel()
		_ = s.db.Close(ctx) // nothing is under way on it
		s.db = nil
	}
	return s.scale(context.Background(), 0)
}

func (s *service) startNode(ctx context.Context, where string, env ...string) error {
	address, err := freeAddress(ctx)
	if err != nil {
		return err
	}
	name := "quotad-" + strconv.Itoa(len(s.nodes)+1)
	args := append([]string{"serve", "--listen=" + address, where}, s.flags...)
	cmd := exec.Command(s.binary, args...) //nolint:noctx // it outlives any context; stop ends it in order
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, "QUOTAD_") {
			cmd.Env = append(cmd.Env, entry)
		}
	}
	cmd.Env = append(append(cmd.Env, "QUOTAD_ADMIN_KEY="+s.admin), env...)
	c, err := spawnLogged(name, filepath.Join(s.dir, name+".log"), cmd)
	if err != nil {
		return err
	}
	n := &node{child: c, address: address}
	s.nodes = append(s.nodes, n)
	return n.await(ctx, readyWait, func() error { _, err := s.get(ctx, n, "/readyz"); return err })
}

// alive is nil while all nodes run.
func (s *service) alive() error {
	for _, n := range s.nodes {
		if err := n.alive(); err != nil {
			return err
		}
	}
	return nil
}

// freeAddress is one of this machine on which nobody listens.
func freeAddress(ctx context.Context) (string, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

func (s *service) put(ctx context.Context, path, body string) error {
	_, err := s.call(ctx, "PUT", path, body)
	return err
}

func (s *service) get(ctx context.Context, n *node, path string) ([]byte, error) {
	return s.do(ctx, n, "GET", path, nil)
}

// call asks the first node as an admin.
func (s *service) call(ctx context.Context, method, path, body string) ([]byte, error) {
	return s.do(ctx, s.nodes[0], method, path, strings.NewReader(body))
}

// do is one request that must succeed.
func (s *service) do(ctx context.Context, n *node, method, path string, body io.Reader) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, "http://"+n.address+path, body)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+s.admin)
	request.Header.Set("Content-Type", "application/json")
	response, err := s.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode/100 != 2 {
		err = fmt.Errorf("%s %s: %s: %s", method, path, response.Status, bytes.TrimSpace(answer))
	}
	return answer, err
}
