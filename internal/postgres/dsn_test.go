package postgres

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

const secret = "hunter2"

func TestErrorsHidePasswords(t *testing.T) {
	for _, databaseURL := range []string{
		"postgres://u:hunter2@host:notaport/db",
		"postgres://u:hunter2%zz@host/db",
		"postgres://u:hunter2@[::1/db",
		"postgres://u:hunter2@host/db?sslmode=bogus",
		"postgres://u:x@host/db?password=hunter2&port=bogus",
		"postgres://u:a/hunter2@host:bogus/db",
		"postgresql://u:hunter2@host:1,host2:bogus/db",
		"host=h password=hunter2 port=bogus",
		"host=h password='hunter2 port=1",
		"host=h password = 'a hunter2' sslmode=bogus",
		"host=h password=a\\ hunter2 connect_timeout=bogus",
		"hunter2",
		"PASSWORD=hunter2 port=bogus",
	} {
		_, err := Open(context.Background(), databaseURL, PoolOptions{})
		if !errors.Is(err, ErrBadURL) {
			t.Errorf("%s: got %v", databaseURL, err)
		}
		_, err2 := Connect(context.Background(), databaseURL, nil)
		_, err3 := Migrate(context.Background(), databaseURL, scratchFS(), MigrateOptions{Logger: quiet})
		for _, err := range []error{err, err2, err3} {
			if err == nil || strings.Contains(err.Error(), secret) {
				t.Errorf("%s: %v", databaseURL, err)
			}
		}
		if shown := Redact(databaseURL); strings.Contains(shown, secret) {
			t.Errorf("Redact(%s) = %s", databaseURL, shown)
		}
	}
	// One that can be read, of a server that is not there.
	const nobody = "postgres://u:hunter2@127.0.0.1:1/db?connect_timeout=1"
	_, err := Connect(context.Background(), nobody, nil)
	_, err2 := Migrate(context.Background(), nobody, scratchFS(), MigrateOptions{Logger: quiet})
	_, err3 := NewClock(nobody, quiet).Now(context.Background())
	for _, err := range []error{err, err2, err3} {
		if err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("%v", err)
		}
	}
}

func TestRedact(t *testing.T) {
	for databaseURL, want := range map[string]string{
		"postgres://u:hunter2@a:1,b:2/db?sslmode=prefer":           "postgres://u@a:1,b:2/db",
		"host=a user=u password=hunter2 dbname=db sslmode=disable": "postgres://u@a:5432/db",
		"postgres://quotad@/quotad?host=/run/x":                    "postgres://quotad@%2Frun%2Fx/quotad",
		"postgres://u:p%zz@a/db":                                   "(unreadable database URL)",
	} {
		if got := Redact(databaseURL); got != want {
			t.Errorf("Redact(%s) = %s, want %s", databaseURL, got, want)
		}
	}
}

func TestDefaultsAndWhatWinsOverThem(t *testing.T) {
	config, err := parse("postgres://u@a,b/db?application_name=mine&timezone=Europe/Berlin", map[string]string{"work_mem": "5MB"}, map[string]string{"jit": "off"})
	if err != nil {
		t.Fatal(err)
	}
	if got := config.RuntimeParams["application_name"]; got != "mine" {
		t.Errorf("application_name = %q", got)
	}
	// A pooler would refuse settings in the first message.
	if len(config.RuntimeParams) != 1 || config.ConnectTimeout != defaultConnectTimeout {
		t.Errorf("params %v, connect timeout %v", config.RuntimeParams, config.ConnectTimeout)
	}
	if config.ValidateConnect == nil {
		t.Error("several hosts, and any would do")
	}
	config, err = parse("postgres://u@a/db?sslmode=prefer&connect_timeout=3", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if config.ValidateConnect != nil || config.ConnectTimeout != 3*time.Second {
		t.Errorf("one host: ValidateConnect %v, timeout %v", config.ValidateConnect != nil, config.ConnectTimeout)
	}
}

func TestPoolBounds(t *testing.T) {
	for _, c := range []struct {
		databaseURL string
		opts        PoolOptions
		want        int32
	}{
		{"postgres://u@a/db", PoolOptions{}, defaultMaxConns},
		{"postgres://u@a/db?pool_max_conns=3", PoolOptions{}, 3},
		{"host=a pool_max_conns=3", PoolOptions{}, 3},
		{"postgres://u@a/db?pool_max_conns=3", PoolOptions{MaxConns: 5}, 5},
	} {
		pool, err := Open(context.Background(), c.databaseURL, c.opts)
		if err != nil {
			t.Fatal(err)
		}
		if got := pool.Config().MaxConns; got != c.want {
			t.Errorf("%s %+v: %d connections", c.databaseURL, c.opts, got)
		}
		pool.Close()
	}
}
