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

// listening contains the settings with which `quotad serve` opens its listener and `quotad health` finds it.
type listening struct {
	Listen  string `placeholder:"ADDRESS" default:"127.0.0.1:8080" help:"Address to serve on. :8080 is port 8080 of all addresses, IPv4 and IPv6."`
	TLSCert string `name:"tls-cert" placeholder:"FILE" help:"Certificate chain, PEM. Serves HTTPS, with --tls-key. Both are read again when they change."`
}

// healthCmd reports whether the quotad with the same settings is ready. It serves as the health check of a
// container that has no shell and no other program.
type healthCmd struct {
	listening
}

const (
	// healthLimit is the maximum duration of `quotad health`, which is less than a container's health check
	// allows.
	healthLimit = 3 * time.Second
	// maxHealth is the maximum number of bytes that are read from a response.
	maxHealth = 4 << 10
)

// errNoPort is returned if the system chooses the port, because the settings do not contain the chosen port.
var errNoPort = errors.New("port 0 is another one with each start: health needs the port that serve listens on")

// run prints the response of /readyz. It fails unless the status is 200. A degraded node returns 200, too,
// because it still admits hits as its limits allow in an outage.
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
	// The request must not use a proxy from the environment, because the process connects to this machine. The
	// certificate is not verified, because it is issued for the service's public names and not for this address.
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // no secrets are exchanged
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
