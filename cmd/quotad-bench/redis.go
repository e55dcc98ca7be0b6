package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"quotad/internal/postgres"
)

// startBackend starts what a contrast row's shell calls, and returns its address.
func (b *bench) startBackend(ctx context.Context, r *row) (stop func() error, where string, err error) {
	if r.shell == backendUpdate {
		url, _ := postgres.RunningURL(b.service.dataDir())
		if _, err := b.service.db.PgConn().Exec(ctx, makeUpdateSQL).ReadAll(); err != nil {
			return nil, "", fmt.Errorf("make the table: %w", err)
		}
		return func() error { return nil }, url, nil
	}
	// What is in no setting is as Debian's package has it: snapshots now and then.
	flags := []string{"--appendonly", "no"}
	if r.shell == backendIncrDurable || r.shell == backendBucketDurable {
		flags = []string{"--appendonly", "yes", "--appendfsync", "always"}
	}
	c, socket, err := b.startRedis(ctx, flags)
	if err != nil {
		return nil, "", err
	}
	return c.stop, socket, nil
}

// redisCommand finds the server's program. Debian's package redis-tools has it, too, under
// the name of a check of its files, and does not start a server of its own.
func redisCommand(ctx context.Context, args ...string) (*exec.Cmd, error) {
	for _, name := range []string{"redis-server", "redis-check-rdb"} {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		version := exec.CommandContext(ctx, path, "--version")
		version.Args[0] = "redis-server"
		if out, err := version.Output(); err != nil || !strings.HasPrefix(string(out), "Redis server ") {
			continue
		}
		cmd := exec.Command(path, args...) //nolint:noctx // it outlives any context; stop ends it in order
		cmd.Args[0] = "redis-server"
		return cmd, nil
	}
	return nil, errors.New("no redis-server: install it with `scripts/deps.sh redis`, or leave the rows of Redis out with -rows")
}

// startRedis starts a server on a socket, with its files in a new directory.
func (b *bench) startRedis(ctx context.Context, flags []string) (*child, string, error) {
	dir, err := os.MkdirTemp(b.dir, "redis-")
	if err != nil {
		return nil, "", err
	}
	socket := filepath.Join(dir, "s")
	cmd, err := redisCommand(ctx, append([]string{"--port", "0", "--unixsocket", socket, "--dir", dir}, flags...)...)
	if err != nil {
		return nil, "", err
	}
	c, err := spawnLogged("redis-server", filepath.Join(dir, "log"), cmd)
	if err != nil {
		return nil, "", err
	}
	client := redis.NewClient(&redis.Options{Network: "unix", Addr: socket})
	defer client.Close()
	deadline := time.Now().Add(shellWait)
	for {
		if err := c.alive(); err != nil {
			return nil, "", err
		}
		err := client.Ping(ctx).Err()
		if err == nil {
			return c, socket, nil
		}
		if time.Now().After(deadline) || ctx.Err() != nil {
			return nil, "", errJoinStop(fmt.Errorf("redis-server does not answer: %w", err), c)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
