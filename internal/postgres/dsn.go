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

// defaultConnectTimeout limits the attempt to connect to one host, unless the URL has a connect_timeout.
const defaultConnectTimeout = 5 * time.Second

// ErrBadURL is returned for a database URL that cannot be parsed. Its text never repeats a password.
var ErrBadURL = errors.New("the database URL cannot be read")

// sessionDefaults are the settings of every session of quotad. Settings in the URL override them.
var sessionDefaults = map[string]string{
	"application_name": "quotad",
	"TimeZone":         "UTC",
}

// parse converts a database URL into a configuration with quotad's defaults. The URL is
// postgres://user:password@host1,host2:5432/db, a list of key=value words, or file: and the path of a file that
// contains one of these forms. A connection attempt is limited: a host that does not respond delays it by
// connect_timeout, five seconds by default.
//
// defaults are session settings that apply if the URL does not contain them. params override the URL's settings.
func parse(databaseURL string, defaults, params map[string]string) (*pgx.ConnConfig, error) {
	text, err := textOf(databaseURL)
	if err != nil {
		return nil, err
	}
	config, err := pgx.ParseConfig(text)
	if err != nil {
		return nil, badURL(text, err)
	}
	// The pool's settings in the URL are not sent to the server.
	maps.DeleteFunc(config.RuntimeParams, func(name, _ string) bool { return strings.HasPrefix(name, "pool_") })
	applyDefaults(&config.Config, defaults, params)
	return config, nil
}

// applyDefaults sets the common settings of all connections of quotad.
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
	// A host that vanished without a reset is noticed in about 30 s if no deadline detects it earlier.
	dialer := &net.Dialer{KeepAliveConfig: net.KeepAliveConfig{
		Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3,
	}}
	config.DialFunc = dialer.DialContext
	// If there are several hosts, only the host that accepts writes is useful.
	if severalHosts(config) && config.ValidateConnect == nil {
		config.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	config.OnPgError = func(_ *pgconn.PgConn, err *pgconn.PgError) bool {
		countError(err)
		// After a failover the old primary may continue as a standby. Its connections are dropped, so that the
		// next attempt finds the new primary.
		const readOnlyTransaction = "25006"
		return !strings.EqualFold(err.Severity, "FATAL") && err.Code != readOnlyTransaction
	}
}

// hasParam reports whether params contains a setting. Like the server, it ignores the case of the name.
func hasParam(params map[string]string, name string) bool {
	for have := range params {
		if strings.EqualFold(have, name) {
			return true
		}
	}
	return false
}

// severalHosts reports whether the configuration has several hosts. pgx's other fallbacks, which try one host
// with and without TLS, do not count.
func severalHosts(config *pgconn.Config) bool {
	for _, f := range config.Fallbacks {
		if f.Host != config.Host || f.Port != config.Port {
			return true
		}
	}
	return false
}

// eachOnce is an error whose text contains no line twice, because pgx lists a host twice if it tried the host
// with and without TLS.
type eachOnce struct{ error }

func (e eachOnce) Unwrap() error { return e.error }

func (e eachOnce) Error() string {
	var lines []string
	for line := range strings.Lines(e.error.Error()) {
		if line = strings.TrimRight(line, "\n"); !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	if len(lines) == 2 { // a line for the attempt and a line for its only reason
		return lines[0] + " " + strings.TrimSpace(lines[1])
	}
	return strings.Join(lines, "\n")
}

// Redact returns databaseURL for a log or a message. It omits the password, and the options, which may contain
// secrets, too. It shows nothing of a URL that cannot be parsed.
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

// passwordWord matches the password in key=value words.
var passwordWord = regexp.MustCompile(`(?i)(pass(?:word|phrase|file)?)\s*=\s*('(?:[^'\\]|\\.)*'?|(?:[^\s\\&]|\\.)*)`)

// badURL returns an error with the reason why a URL cannot be parsed. The position of the password is unknown in
// a URL that net/url cannot parse, so the error repeats nothing of such a URL.
func badURL(databaseURL string, err error) error {
	const shape = "expected postgres://user:password@host:5432/database (several hosts with commas; special characters in the password as %XX) or key=value words"
	if strings.Contains(databaseURL, "://") {
		return fmt.Errorf("%w: %s", ErrBadURL, shape)
	}
	var parseErr *pgconn.ParseConfigError
	reason := err.Error()
	if errors.As(err, &parseErr) {
		// pgx repeats the whole string before the reason. Only the reason is used.
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
