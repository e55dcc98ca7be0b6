package webhooks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	standard "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

const (
	// maxAnswer is what is read of an answer's body, bytes. A connection of which more comes is closed.
	maxAnswer = 16 << 10
	// maxAnswerHead bounds an answer's head.
	maxAnswerHead = 32 << 10
	// idle is how long a connection is kept for the next event.
	idle = 30 * time.Second
	// maxError is how much is kept of an error, bytes.
	maxError = 300
)

// newClient makes a client for a webhook's URL. plain: without TLS, to this machine. privately: private
// addresses are allowed, too. within bounds an attempt.
func newClient(plain, privately bool, within time.Duration) *http.Client {
	dialer := &net.Dialer{Timeout: within, Control: control(plain, privately)}
	return &http.Client{
		Transport: &http.Transport{
			Proxy:       nil, // the proxy would look up the name, and dial what it likes
			DialContext: dialer.DialContext, ForceAttemptHTTP2: true, TLSHandshakeTimeout: within,
			MaxIdleConnsPerHost: perWebhook, MaxIdleConns: maxWebhooks * perWebhook, IdleConnTimeout: idle,
			MaxResponseHeaderBytes: maxAnswerHead, DisableCompression: true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// clients are those of a node. Without TLS a client of its own dials this machine alone.
type clients struct {
	tls, plain *http.Client
	within     time.Duration
}

func newClients(privately bool, within time.Duration) *clients {
	return &clients{newClient(false, privately, within), newClient(true, privately, within), within}
}

// closeIdle closes connections that wait for a next event.
func (c *clients) closeIdle() {
	c.tls.CloseIdleConnections()
	c.plain.CloseIdleConnections()
}

// outcome is what became of an attempt.
type outcome struct {
	status int    // of the answer; 0: there was none
	failed string // why it failed; "": it was a 2xx
}

// sign is the header webhook-signature: one signature by each secret.
func sign(secrets [][]byte, id string, at time.Time, body []byte) (string, error) {
	var all []string
	for _, secret := range secrets {
		by, err := standard.NewWebhookRaw(secret)
		if err != nil {
			return "", err
		}
		signature, err := by.Sign(id, at, body)
		if err != nil {
			return "", err
		}
		all = append(all, signature)
	}
	return strings.Join(all, " "), nil
}

// post sends a body once, and waits for the answer for within at most.
func (c *clients) post(ctx context.Context, to string, secrets [][]byte, id string, at time.Time, body []byte) outcome {
	ctx, cancel := context.WithTimeout(ctx, c.within)
	defer cancel()
	signature, err := sign(secrets, id, at, body)
	if err != nil {
		return outcome{failed: failure(err)}
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return outcome{failed: failure(err)}
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "quotad")
	r.Header.Set(standard.HeaderWebhookID, id)
	r.Header.Set(standard.HeaderWebhookTimestamp, strconv.FormatInt(at.Unix(), 10))
	r.Header.Set(standard.HeaderWebhookSignature, signature)
	by := c.tls
	if r.URL.Scheme == "http" {
		by = c.plain
	}
	response, err := by.Do(r)
	switch {
	case err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
		return outcome{failed: "no answer in time"}
	case err != nil:
		return outcome{failed: failure(err)}
	}
	defer response.Body.Close()
	// What is read to its end leaves the connection for the next event. Nobody asks what it says.
	_, _ = io.CopyN(io.Discard, response.Body, maxAnswer)
	switch code := response.StatusCode; {
	case code >= 200 && code < 300:
		return outcome{status: code}
	case code >= 300 && code < 400:
		return outcome{code, fmt.Sprintf("the answer is %d: redirects are not followed", code)}
	default:
		return outcome{code, fmt.Sprintf("the answer is %d", code)}
	}
}

// failure is an error as it is kept: short, and valid text. The webhook's own URL is not in it, and neither is
// the address of the resolver that this host asks.
func failure(err error) string {
	if of := (*net.DNSError)(nil); errors.As(err, &of) {
		switch name := strconv.Quote(of.Name); {
		case of.IsNotFound:
			err = fmt.Errorf("the name %s: no such host", name)
		case of.IsTimeout:
			err = fmt.Errorf("the name %s was not looked up in time", name)
		default:
			err = fmt.Errorf("the name %s cannot be looked up now", name)
		}
	}
	if of := (*url.Error)(nil); errors.As(err, &of) {
		err = of.Err
	}
	text := strings.ToValidUTF8(strings.ReplaceAll(err.Error(), "\x00", ""), "�")
	if len(text) <= maxError {
		return text
	}
	cut := maxError
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}
