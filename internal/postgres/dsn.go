package postgres

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// defaultConnectTimeout bounds the attempt on one host, unless the URL has a
// connect_timeout of its own.
const defaultConnectTimeout = 5 * time.Second

// ErrBadURL is returned for a database URL that cannot be read. Its text never
// repeats a password.
var ErrBadURL = errors.New("the database URL cannot be read")

// sessionDefaults hold for every session of quotad. What the URL sets wins.
var sessionDefaults = map[string]string{
	"application_name": "quotad",
	"TimeZone":         "UTC",
}

// parse reads a database URL (postgres://user:password@host1,host2:5432/db, key=value words, or
// file: and the path of a file with one of them) into a configuration with quotad's defaults. It
// is bounded: a host that does not answer costs connect_timeout, five seconds by default.
//
// defaults are settings of the session where the URL has none; params win over the URL's.
func parse(databaseURL string, defaults, params map[string]string) (*pgx.ConnConfig, error) {
	text, err := textOf(databaseURL)
	if err != nil {
		return nil, err
	}
	config, err := pgx.ParseConfig(text)
	if err != nil {
		return nil, badURL(text, err)
	}
	// Settings of the pool in the URL are not for the server.
	maps.DeleteFunc(config.RuntimeParams, func(name, _ string) bool { return strings.HasPrefix(name, "pool_") })
	applyDefaults(&config.Config, defaults, params)
	return config, nil
}

// applyDefaults sets what every connection of quotad has.
func applyDefaults(config *pgconn.Config, defaults, params map[string]string) {
	for _, some := range []map[string]string{sessionDefaults, defaults} {
		for name, value := range some {
			if !hasParam(config.RuntimeParams, name) {
				config.RuntimeParams[name] = value
			}
		}
	}
	maps.Copy(config.RuntimeParams, params)
	setLater(config)
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = defaultConnectTimeout
	}
	// A host that vanished (no reset, no answer) is noticed in about 30 s
	// where no deadline does it sooner.
	dialer := &net.Dialer{KeepAliveConfig: net.KeepAliveConfig{
		Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3,
	}}
	config.DialFunc = dialer.DialContext
	// With several hosts only the one that takes writes is of use.
	if severalHosts(config) && config.ValidateConnect == nil {
		config.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	config.OnPgError = func(_ *pgconn.PgConn, err *pgconn.PgError) bool {
		countError(err)
		// After a failover the old primary may live on as a standby: drop its
		// connections, so that the next attempt looks for the new one.
		const readOnlyTransaction = "25006"
		return !strings.EqualFold(err.Severity, "FATAL") && err.Code != readOnlyTransaction
	}
}

// hasParam looks a setting up as the server does, whatever its case.
func hasParam(params map[string]string, name string) bool {
	for have := range params {
		if strings.EqualFold(have, name) {
			return true
		}
	}
	return false
}

// severalHosts tells a list of hosts from pgx's other fallbacks, which try one
// host with and without TLS.
func severalHosts(config *pgconn.Config) bool {
	for _, f := range config.Fallbacks {
		if f.Host != config.Host || f.Port != config.Port {
			return true
		}
	}
	return false
}

// eachOnce is an error whose text has no line twice: pgx lists a host twice that it tried with
// and without TLS.
type eachOnce struct{ error }

func (e eachOnce) Unwrap() error { return e.error }

func (e eachOnce) Error() string {
	var lines []string
	for line := range strings.Lines(e.error.Error()) {
		if line = strings.TrimRight(line, "\n"); !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	if len(lines) == 2 { // one line for the attempt, one for its only reason
		return lines[0] + " " + strings.TrimSpace(lines[1])
	}
	return strings.Join(lines, "\n")
}

// Redact returns databaseURL for a log or a message. It leaves out the password, and the
// options, which may hold secrets too. It shows nothing of a URL that cannot be read.
func Redact(databaseURL string) string {
	text, err := textOf(databaseURL)
	if err != nil {
		return "(unreadable database URL)"
	}
	config, err := pgconn.ParseConfig(text)
	if err != nil {
		return "(unreadable database URL)"
	}
	hosts := []string{hostPort(config.Host, config.Port)}
	for _, f := range config.Fallbacks {
		if next := hostPort(f.Host, f.Port); next != hosts[len(hosts)-1] {
			hosts = append(hosts, next)
		}
	}
	shown := url.URL{Scheme: "postgres", User: url.User(config.User), Path: "/" + config.Database}
	return strings.Replace(shown.String(), "@/", "@"+strings.Join(hosts, ",")+"/", 1)
}

func hostPort(host string, port uint16) string {
	if strings.HasPrefix(host, "/") {
		return url.PathEscape(host)
	}
	return net.JoinHostPort(host, fmt.Sprint(port))
}

// passwordWord finds the password in key=value words.
var passwordWord = regexp.MustCompile(`(?i)(pass(?:word|phrase|file)?)\s*=\s*('(?:[^'\\]|\\.)*'?|(?:[^\s\\&]|\\.)*)`)

// badURL says why a URL cannot be read, without a risk to the password. In a URL that net/url
// cannot parse nobody can tell where the password begins and ends. So it repeats nothing of
// such a URL.
func badURL(databaseURL string, err error) error {
	const shape = "expected postgres://user:password@host:5432/database (several hosts with commas; special characters in the password as %XX) or key=value words"
	if strings.Contains(databaseURL, "://") {
		return fmt.Errorf("%w: %s", ErrBadURL, shape)
	}
	var parseErr *pgconn.ParseConfigError
	reason := err.Error()
	if errors.As(err, &parseErr) {
		// pgx repeats the whole string first; only what follows is wanted.
		if at := strings.LastIndex(reason, "`: "); at >= 0 {
			reason = reason[at+len("`: "):]
		}
	}
	for _, m := range passwordWord.FindAllStringSubmatch(databaseURL, -1) {
		if secret := strings.Trim(m[2], "'"); secret != "" && strings.Contains(reason, secret) {
			return fmt.Errorf("%w: %s", ErrBadURL, shape)
		}
	}
	return fmt.Errorf("%w: %s; %s", ErrBadURL, reason, shape)
}
