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
	// maxAnswer is the number of bytes that are read of an answer's body. A connection that sends more is
	// closed.
	maxAnswer = 16 << 10
	// maxAnswerHead bounds the head of an answer, in bytes.
	maxAnswerHead = 32 << 10
	// idle is the time for which an unused connection is kept.
	idle = 30 * time.Second
	// maxError is the number of bytes that are stored of an error.
	maxError = 300
)

// newClient returns a client for a webhook's URL. plain means a connection without TLS, to this machine only.
// privately means that private addresses are allowed. within bounds an attempt.
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

// clients are the HTTP clients of a node. Requests without TLS have a separate client, which dials this machine
// only.
type clients struct {
	tls, plain *http.Client
	within     time.Duration
}

func newClients(privately bool, within time.Duration) *clients {
	return &clients{newClient(false, privately, within), newClient(true, privately, within), within}
}

// closeIdle closes unused connections.
func (c *clients) closeIdle() {
	c.tls.CloseIdleConnections()
	c.plain.CloseIdleConnections()
}

// outcome is the result of an attempt.
type outcome struct {
	status int    // of the answer; 0: there was none
	failed string // why it failed; "": it was a 2xx
}

// sign returns the header webhook-signature, which contains one signature for each secret.
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

// post sends a body once, and waits at most within for the answer.
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
	// The body is read to its end so that the connection can be reused. Its content does not matter.
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

// failure returns the text of an error that is stored: short, valid UTF-8, and without the webhook's URL and the
// address of the host's resolver.
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
