package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// listening says where `quotad serve` listens, and that `quotad health` finds it there.
type listening struct {
	Listen  string `placeholder:"ADDRESS" default:"127.0.0.1:8080" help:"Address to serve on. :8080 is port 8080 of all addresses, IPv4 and IPv6."`
	TLSCert string `name:"tls-cert" placeholder:"FILE" help:"Certificate chain, PEM. Serves HTTPS, with --tls-key. Both are read again when they change."`
}

// healthCmd asks the quotad of the same settings whether it is ready: for a container without a
// shell, whose health check can run nothing else.
type healthCmd struct {
	listening
}

const (
	// healthLimit bounds the whole of `quotad health`. A health check of a container waits longer.
	healthLimit = 3 * time.Second
	// maxHealth bounds what is read of an answer, bytes.
	maxHealth = 4 << 10
)

// errNoPort: a port that the system chose is not in the settings.
var errNoPort = errors.New("port 0 is another one with each start: health needs the port that serve listens on")

// run prints what /readyz answers. It fails unless the answer is 200, which is one of a degraded
// node, too: it serves what an outage lets in.
func (h *healthCmd) run(ctx context.Context, p *program) error {
	if err := checkAddress("listen", h.Listen); err != nil {
		return err
	}
	if port := h.Listen[len(h.Listen)-2:]; port == ":0" {
		return badSetting("listen", "%w", errNoPort)
	}
	ctx, cancel := context.WithTimeout(ctx, healthLimit)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, localURL(h.Listen, h.TLSCert != "")+"/readyz", http.NoBody)
	if err != nil {
		return err
	}
	// No proxy of the environment stands between a process and itself. The certificate is for the
	// names by which clients find the service, and not for this address.
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // nothing secret is asked or answered
	}}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxHealth))
	if err != nil {
		return err
	}
	body = bytes.TrimSpace(body)
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("not ready: %s: %s", response.Status, body)
	}
	_, err = fmt.Fprintf(p.stdout, "%s\n", body)
	return err
}
