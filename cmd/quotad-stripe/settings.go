package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// settings contains the settings of `quotad-stripe run`.
type settings struct {
	QuotadURL string `name:"quotad-url" required:"" placeholder:"URL" help:"Where quotad is, such as https://quotad.example.com."`
	QuotadKey string `name:"quotad-key" placeholder:"SECRET" help:"Secret of a key of quotad's of scope admin. Better in the environment, or in a file."`

	StripeKey     string `name:"stripe-key" placeholder:"SECRET" help:"Stripe's secret or restricted key. Better in the environment, or in a file."`
	StripeURL     string `name:"stripe-url" placeholder:"URL" default:"https://api.stripe.com" help:"Where Stripe's API is. Another one is for tests."`
	WebhookSecret string `name:"webhook-secret" placeholder:"SECRET" help:"The signing secret of Stripe's webhook endpoint, for --listen. Better in the environment, or in a file."`

	State     string `placeholder:"FILE" default:"quotad-stripe.json" help:"The state file. One bridge at a time has it: it is locked."`
	Start     string `placeholder:"all|now" enum:"all,now," default:"" help:"Without a state file: all sends every invoice that is open and whose event quotad still keeps, and now only those finalized from now on. What is at Stripe already is found there, so after a loss of the file take all."`
	AcceptGap bool   `name:"accept-gap" help:"Go on although quotad has deleted events that the bridge has not read: a person has looked through the invoices of that time."`

	Listen     string        `placeholder:"ADDRESS" help:"Address for Stripe's webhook (/webhook), /healthz and /metrics. TLS is for the proxy before it. Unset: Stripe is asked alone."`
	Poll       time.Duration `placeholder:"DURATION" default:"5s" help:"How often quotad is asked for events, 100ms to 1h."`
	StripePoll time.Duration `name:"stripe-poll" placeholder:"DURATION" default:"1m" help:"How often Stripe is asked for events, whatever its webhook has brought, 100ms to 24h."`
	Sweep      time.Duration `placeholder:"DURATION" default:"6h" help:"How often each invoice that is open at Stripe is looked at, 1m to 168h. Also at each start."`
	Workers    int           `placeholder:"N" default:"4" help:"Invoices that are looked at at once, 1 to 32. Stripe limits requests a second."`
	Collection string        `placeholder:"METHOD" enum:"charge_automatically,send_invoice" default:"charge_automatically" help:"How Stripe collects: charge_automatically or send_invoice."`
	Numbers    string        `placeholder:"quotad|stripe" enum:"quotad,stripe" default:"quotad" help:"Whose numbers invoices at Stripe have. With stripe, quotad's number stands in a field of its own."`
	TestReal   bool          `name:"test-real-customers" help:"With a key of Stripe's test mode, send also invoices of customers that are on no test clock. Stripe's test mode collects no money, and a payment there is noted in quotad."`
	LogLevel   slog.Level    `placeholder:"LEVEL" default:"info" help:"debug, info, warn or error."`
	LogFormat  string        `placeholder:"text|json" enum:"text,json" default:"text" help:"Shape of the log."`

	transport http.RoundTripper // for tests: carries all requests to quotad and Stripe
	retries   *int64            // for tests: the number of retries within stripe-go
	pause     time.Duration     // for tests: the first pause after a failure; 0 means firstPause
	listening chan<- string     // for tests: receives the address of the listener
}

// Bounds of the settings.
const (
	maxWorkers = 32 // Stripe allows 100 requests a second, including those of other programs

	minPoll  = 100 * time.Millisecond
	maxPoll  = time.Hour
	maxEvery = 24 * time.Hour // Stripe keeps events for 30 days
	minSweep = time.Minute
	maxSweep = 7 * 24 * time.Hour
)

// check returns an error for settings that cannot work, before any request is sent.
func (s *settings) check() error {
	for _, u := range []struct{ flag, value string }{{"quotad-url", s.QuotadURL}, {"stripe-url", s.StripeURL}} {
		parsed, err := url.Parse(u.value)
		if err != nil || parsed.Scheme != "http" && parsed.Scheme != "https" || parsed.Host == "" || parsed.RawQuery != "" || parsed.User != nil {
			return badSetting(u.flag, "must be a URL such as https://quotad.example.com, without a query and a password")
		}
	}
	s.QuotadURL, s.StripeURL = strings.TrimRight(s.QuotadURL, "/"), strings.TrimRight(s.StripeURL, "/")
	switch {
	case s.QuotadKey == "":
		return badSetting("quotad-key", "is missing: set %s_QUOTAD_KEY, or %s_QUOTAD_KEY_FILE to a file that has it", envPrefix, envPrefix)
	case s.StripeKey == "":
		return badSetting("stripe-key", "is missing: set %s_STRIPE_KEY, or %s_STRIPE_KEY_FILE to a file that has it", envPrefix, envPrefix)
	case s.mode() == "":
		return badSetting("stripe-key", "is no secret or restricted key: those begin with sk_live_, sk_test_, rk_live_ or rk_test_")
	case s.TestReal && s.mode() != modeTest:
		return badSetting("test-real-customers", "needs a key of Stripe's test mode: by a live key each customer that is on no test clock is sent anyway")
	case s.Listen != "" && s.WebhookSecret == "":
		return badSetting("webhook-secret", "is missing: --listen takes webhooks, and checks their signatures by it. It begins with whsec_")
	}
	if s.Workers < 1 || s.Workers > maxWorkers {
		return badSetting("workers", "must be between 1 and %d, not %d", maxWorkers, s.Workers)
	}
	for _, d := range []struct {
		flag               string
		value, least, most time.Duration
	}{
		{"poll", s.Poll, minPoll, maxPoll},
		{"stripe-poll", s.StripePoll, minPoll, maxEvery},
		{"sweep", s.Sweep, minSweep, maxSweep},
	} {
		if d.value < d.least || d.value > d.most {
			return badSetting(d.flag, "must be between %s and %s, not %s", d.least, d.most, d.value)
		}
	}
	return nil
}

// Stripe's modes. An object of one mode does not exist in the other.
const (
	modeLive = "live"
	modeTest = "test"
)

// mode returns the mode of the key, or an empty string if the key cannot write.
func (s *settings) mode() string {
	for _, kind := range []string{"sk_", "rk_"} {
		for _, mode := range []string{modeLive, modeTest} {
			if strings.HasPrefix(s.StripeKey, kind+mode+"_") {
				return mode
			}
		}
	}
	return ""
}

// sends reports whether a customer's invoices are sent to Stripe. onClock reports that the customer is on a test
// clock. A live key never sends invoices of such customers. A test-mode key sends only invoices of such
// customers, unless a flag allows all customers.
func (s *settings) sends(onClock bool) bool {
	if s.mode() == modeTest {
		return onClock || s.TestReal
	}
	return !onClock
}

func (s *settings) logger(to io.Writer) *slog.Logger {
	options := &slog.HandlerOptions{Level: s.LogLevel}
	if s.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(to, options))
	}
	return slog.New(slog.NewTextHandler(to, options))
}

func (s *settings) run(ctx context.Context, p *program) error {
	if err := s.check(); err != nil {
		return err
	}
	b, err := open(ctx, *s, s.logger(p.stderr))
	if err != nil {
		return fmt.Errorf("start: %w", err)
	}
	return b.serve(ctx)
}
