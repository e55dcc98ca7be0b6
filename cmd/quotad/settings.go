package main

import (
	"cmp"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"quotad/internal/api/respond"
	"quotad/internal/plans"
	"quotad/internal/postgres"
	"quotad/internal/postgres/embedded"
)

// settingError is an invalid setting, with the name of its flag.
type settingError struct {
	flag string // empty if the text names the flag
	err  error
}

func (e *settingError) Error() string {
	if e.flag == "" {
		return e.err.Error()
	}
	return fmt.Sprintf("--%s: %v", e.flag, e.err)
}

func (e *settingError) Unwrap() error { return e.err }

func badSetting(flag, format string, args ...any) error {
	return &settingError{flag, fmt.Errorf(format, args...)}
}

// common contains the settings of every command that needs the database.
type common struct {
	DatabaseURL string `placeholder:"URL" help:"PostgreSQL to use, as postgres://user:password@host:5432/database or key=value words; several hosts are separated by commas. file:PATH is a file with the URL, which is read again for each new connection, and so are passwords and certificates. Empty: an embedded server of quotad's own."`
	DataDir     string `placeholder:"DIR" default:"${data_dir}" help:"Directory of the embedded server's data."`
	LogLevel    string `placeholder:"LEVEL" help:"What goes to the log: debug, info (serve's default), warn (the other commands'), or error."`
	LogFormat   string `placeholder:"text|json" enum:"text,json" default:"text" help:"Shape of the log."`

	embedded func(*embedded.Options) // for tests: changes the options of the server
}

// settings contains the settings of `quotad serve`. Each setting is a flag and an environment variable.
type settings struct {
	common
	listening
	AdminKey      string `placeholder:"SECRET" help:"Secret of an admin key that must exist, 16 to 200 printable characters. Unset: one is made on the first start and printed once."`
	PublicURL     string `placeholder:"URL" help:"Where clients find this service; named in the documentation."`
	MetricsListen string `placeholder:"ADDRESS" help:"Address to serve /metrics on, without a key, instead of the main one."`
	TLSKey        string `name:"tls-key" placeholder:"FILE" help:"Private key of the certificate, PEM."`
	Demo          bool   `help:"Make a meter, a plan and a customer to play with, unless they exist, and print a curl line. The admin key is then kept in the data directory (demo-admin-key), to print the line again."`

	RateLimitReset  string        `placeholder:"seconds|epoch|ms" enum:"seconds,epoch,ms" default:"seconds" help:"What X-RateLimit-Reset says: seconds left, the Unix time of the reset, or milliseconds left."`
	RequestTimeout  time.Duration `placeholder:"DURATION" default:"5s" help:"How long a request may wait for the database, at most 9s."`
	DecideWithin    time.Duration `placeholder:"DURATION" default:"1s" help:"How long what charges, or gives back, may wait for the database, 100ms to 5s. A hit that was not sent by then is decided by on_outage, and so are later ones until the database commits in time."`
	StartTimeout    time.Duration `placeholder:"DURATION" default:"60s" help:"How long to wait at the start for a database that is out of reach, takes no writes or has no free session."`
	DrainDelay      time.Duration `placeholder:"DURATION" default:"0s" help:"How long to serve on, no longer ready, before stopping: time for a load balancer to notice."`
	Lanes           int           `placeholder:"N" default:"1" help:"Database sessions that charge hits, 1 to 64, and as many more for what has an id, refunds and reservations."`
	MaxQueue        int           `placeholder:"N" default:"10000" help:"Hits that may wait in each lane, and operations beside them, half of them of one key; more are answered 503. At most 1000000."`
	MaxReservations int           `placeholder:"N" default:"10000" help:"Reservations that a customer may have open on a meter; one more is answered 409. At most 100000."`
	CacheMemory     int           `placeholder:"MIB" default:"75" help:"MiB of memory for customers: a quarter keeps customers, their counters and refusals ready, and the rest keeps a million more customers or so, packed. At most 65536."`
	CloseStep       time.Duration `name:"close-step-timeout" placeholder:"DURATION" default:"10s" help:"How long one step of a customer's billing may take: to close a period, or to finalize an invoice. A customer whose step takes longer is blocked, and tried again after a minute. Longer for a machine so slow that nothing else is wrong with such customers. 1s to 10m."`
	FailedKeys      int           `name:"failed-keys-per-minute" placeholder:"N" default:"60" help:"Wrong keys that an address may send in a minute, and as many at once; more are answered 429 without a look at the database. Behind a proxy all clients have the proxy's address. 0: not limited. At most 1000000."`

	BrandName           string   `placeholder:"NAME" help:"What the customer's pages (the portal) are called: the name of your service, at most 60 characters."`
	BrandLogo           string   `placeholder:"FILE" help:"Logo of the portal, an SVG or PNG file of at most 64 KiB."`
	BrandAccent         string   `placeholder:"COLOURS" help:"Accent of the portal on light pages and on dark ones, as #2a56c6,#8cb0ff. Each needs a contrast of 4.5:1."`
	PortalOrigins       []string `placeholder:"ORIGIN" sep:"," help:"Sites that may show the portal in a frame, such as https://app.example.com, separated by commas."`
	PortalReturnOrigins []string `placeholder:"ORIGIN" sep:"," help:"Sites that the portal may lead back to, such as https://app.example.com, separated by commas."`
	PortalPlans         []string `placeholder:"PLAN" sep:"," help:"Keys of plans that customers may ask for in the portal, at most 20, separated by commas. Who asks changes nothing: the event customer.plan_requested tells it."`

	WebhookAllowPrivate bool `name:"webhook-allow-private" help:"Let webhooks have private addresses, and this machine's without TLS: whoever has an admin key can then send POST requests to them. Webhooks of a --demo that serves 127.0.0.1 may have them anyway."`

	// The following settings are shared by all nodes, see shared. nil means that the setting was not set on this
	// node; agree then sets the value in force.
	AnonymousTTL   *time.Duration `name:"anonymous-ttl" placeholder:"DURATION" help:"How long a customer that was made by a hit may be without an admitted one before it is forgotten, 1m to 8760h. Longer than the default plan's windows, or who waits that long has a new quota. Default: 720h. One for all nodes, see settings list."`
	AuditRetention *time.Duration `placeholder:"DURATION" help:"How long the audit trail is kept, 24h to 876000h. Default: 17520h, two years. One for all nodes, see settings list."`
	CloseDelay     *time.Duration `placeholder:"DURATION" help:"How long after the end of a billing period its invoice is drafted, 0s to 1h. Default: 10s. One for all nodes, see settings list."`
	CorrectionTime *time.Duration `placeholder:"DURATION" help:"How long after its draft an invoice is finalized, 0s to 720h: until then what changes the usage of its period changes the draft. Default: 1h. One for all nodes, see settings list."`
	DefaultPlan    *string        `placeholder:"PLAN" help:"Key of a plan without prices. A customer that is not known is made on it by its first hit, anonymous, and forgotten when idle. Default: none, hits of unknown customers are refused. One for all nodes, see settings list."`
	EventRetention *time.Duration `placeholder:"DURATION" help:"How long events are kept, 48h to 87600h. Default: 840h, 35 days. One for all nodes, see settings list."`
	IDRetention    *time.Duration `name:"id-retention" placeholder:"DURATION" help:"How long the id of a request is kept at least, 48h to 9600h: sent again within it, the request is answered again and charged once. Default: 840h. One for all nodes, see settings list."`

	stdout    io.Writer            // nil means os.Stdout
	stderr    io.Writer            // for the log; nil means os.Stderr
	started   func(*node)          // for tests: called when the node serves
	patience  time.Duration        // for tests: the minimum of this node's deadlines
	drain     func(time.Duration)  // for tests: waits for DrainDelay; nil means time.Sleep
	stopwatch func() time.Duration // for tests: monotonic time of engine and catalog; nil means newStopwatch
}

// atLeast returns a deadline of this node, which a test may have lengthened. On a machine that stalls, the usual
// deadline would end the operation that the test checks.
func (s *settings) atLeast(usual time.Duration) time.Duration { return max(usual, s.patience) }

// Bounds of numeric settings.
const (
	maxRequestTimeout = 9 * time.Second // within the API's write timeout, with time left to read the body
	minDecideWithin   = 100 * time.Millisecond
	maxDecideWithin   = 5 * time.Second
	maxLanes          = 64
	maxQueue          = 1_000_000 // for each lane; each waiting hit also has a waiting caller
	maxReservations   = 100_000   // each hit on the customer's meter reads all reservations
	maxCacheMemory    = 65_536    // MiB
	maxFailedKeys     = 1_000_000
	minCloseStep      = time.Second      // with less, a momentarily busy database would block customers
	maxCloseStep      = 10 * time.Minute // a step locks its customer and seller, so admins who write them wait
	maxWait           = 24 * time.Hour
)

// check returns an error for settings that cannot work, before anything is started.
func (s *settings) check() error {
	for _, n := range []struct {
		flag               string
		value, least, most int
	}{
		{"lanes", s.Lanes, 1, maxLanes},
		{"max-queue", s.MaxQueue, 1, maxQueue},
		{"max-reservations", s.MaxReservations, 1, maxReservations},
		{"cache-memory", s.CacheMemory, 1, maxCacheMemory},
		{"failed-keys-per-minute", s.FailedKeys, 0, maxFailedKeys},
	} {
		if n.value < n.least || n.value > n.most {
			return badSetting(n.flag, "must be between %d and %d, not %d", n.least, n.most, n.value)
		}
	}
	for _, d := range []struct {
		flag               string
		value, least, most time.Duration
	}{
		{"request-timeout", s.RequestTimeout, time.Millisecond, s.atLeast(maxRequestTimeout)},
		{"decide-within", s.DecideWithin, minDecideWithin, s.atLeast(maxDecideWithin)},
		{"close-step-timeout", s.CloseStep, minCloseStep, maxCloseStep},
		{"start-timeout", s.StartTimeout, time.Millisecond, maxWait},
		{"drain-delay", s.DrainDelay, 0, time.Hour},
	} {
		if d.value < d.least || d.value > d.most {
			return badSetting(d.flag, "must be between %s and %s, not %s", d.least, d.most, d.value)
		}
	}
	for _, one := range s.shared() {
		if !one.told {
			continue
		}
		if _, err := one.take(one.value); err != nil {
			return err
		}
	}
	if err := checkAddress("listen", s.Listen); err != nil {
		return err
	}
	if s.MetricsListen != "" {
		if err := checkAddress("metrics-listen", s.MetricsListen); err != nil {
			return err
		}
	}
	if s.AdminKey != "" && !plans.ValidSecret(s.AdminKey) {
		return badSetting("admin-key", "the secret %s", plans.SecretRule)
	}
	if (s.TLSCert == "") != (s.TLSKey == "") {
		return badSetting("tls-cert", "and --tls-key belong together: give both or neither")
	}
	if err := s.checkPublicURL(); err != nil {
		return err
	}
	_, err := s.brand()
	return cmp.Or(err, checkOrigins("portal-origins", s.PortalOrigins), checkOrigins("portal-return-origins", s.PortalReturnOrigins), s.checkPortalPlans())
}

func (s *settings) checkPortalPlans() error {
	const most = 20
	if len(s.PortalPlans) > most {
		return badSetting("portal-plans", "must be at most %d plans, not %d", most, len(s.PortalPlans))
	}
	for _, key := range s.PortalPlans {
		if !plans.ValidKey(key) {
			return badSetting("portal-plans", "must be keys of plans, not %q: each %s", key, plans.KeyRule)
		}
	}
	return nil
}

func (s *settings) checkPublicURL() error {
	if s.PublicURL == "" {
		return nil
	}
	u, err := url.Parse(s.PublicURL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return badSetting("public-url", "must be such as https://quota.example.com")
	}
	return nil
}

func checkAddress(flag, address string) error {
	_, port, err := net.SplitHostPort(address)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return badSetting(flag, "must be an address and a port from 0 to 65535, such as 127.0.0.1:8080, not %q", address)
	}
	return nil
}

// privateWebhooks reports whether webhooks may have private addresses. They also may with --demo while only this
// machine can reach quotad, because receivers for a trial run on the same machine.
func (s *settings) privateWebhooks() bool {
	host, _, _ := net.SplitHostPort(s.Listen) // check has already refused an invalid address
	address, err := netip.ParseAddr(host)
	return s.WebhookAllowPrivate || s.Demo && (host == "localhost" || err == nil && address.IsLoopback())
}

// checkLog validates the log settings of every command that logs.
func (c *common) checkLog() error {
	switch c.LogLevel {
	case "", "debug", "info", "warn", "error":
		return nil
	}
	return badSetting("log-level", "must be debug, info, warn or error, not %q", c.LogLevel)
}

func (s *settings) resetStyle() respond.ResetStyle {
	switch s.RateLimitReset {
	case "epoch":
		return respond.ResetEpoch
	case "ms":
		return respond.ResetMillis
	}
	return respond.ResetSeconds
}

// out returns the writer to which announce prints.
func (s *settings) out() io.Writer {
	if s.stdout == nil {
		return os.Stdout
	}
	return s.stdout
}

// logger returns a logger that writes to stderr, because stdout is for announce.
func (s *settings) logger() *slog.Logger {
	w := s.stderr
	if w == nil {
		w = os.Stderr
	}
	return s.common.logger(w, slog.LevelInfo)
}

func (c *common) logger(w io.Writer, level slog.Level) *slog.Logger {
	if c.LogLevel != "" {
		_ = level.UnmarshalText([]byte(c.LogLevel)) // checkLog has already refused invalid levels
	}
	options := &slog.HandlerOptions{Level: level}
	if c.LogFormat == "json" {
		return slog.New(budgeted(slog.NewJSONHandler(w, options)))
	}
	options.ReplaceAttr = onOneLine
	return slog.New(budgeted(slog.NewTextHandler(w, options)))
}

// onOneLine joins the lines of an error with " | ". slog would write the line breaks as \n and \t, which is hard
// to read.
func onOneLine(_ []string, a slog.Attr) slog.Attr {
	if err, ok := a.Value.Any().(error); ok && strings.Contains(err.Error(), "\n") {
		var parts []string
		for line := range strings.Lines(err.Error()) {
			parts = append(parts, strings.TrimSpace(line))
		}
		a.Value = slog.StringValue(strings.Join(parts, " | "))
	}
	return a
}

// embeddedDir returns dataDir if the server is embedded, and otherwise an empty string.
func (c *common) embeddedDir() string {
	if c.DatabaseURL != "" {
		return ""
	}
	return c.dataDir()
}

// dataDir returns the directory of the embedded server's data.
func (c *common) dataDir() string {
	if c.DataDir == "" {
		return embedded.DefaultDataDir()
	}
	return c.DataDir
}

// place describes the location of the data: a database on a server, or a directory.
func (c *common) place() string {
	if c.DatabaseURL != "" {
		return "the database " + postgres.Redact(c.DatabaseURL)
	}
	dir := c.dataDir()
	if whole, err := filepath.Abs(dir); err == nil {
		dir = whole
	}
	return "the data directory " + dir
}

// placeFlag returns the flag with which another command finds the same data. It returns an empty string if the
// default finds them.
func (c *common) placeFlag() string {
	switch {
	case c.DatabaseURL != "":
		return " --database-url=…"
	case c.dataDir() != embedded.DefaultDataDir():
		return " --data-dir=" + c.dataDir()
	}
	return ""
}
