package main

import (
	"crypto/tls"
	"encoding/pem"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"
)

// certificateLook is the minimum time between two checks of the certificate's files.
const certificateLook = time.Second

// certificate is the listener's TLS certificate. If its files have changed, a new connection reloads them.
type certificate struct {
	chain, key string // paths
	log        *slog.Logger

	mu      sync.Mutex
	looked  time.Time
	written [2]time.Time // modification times of the files at the last load
	now     *tls.Certificate
}

// newCertificate loads a certificate from its files.
func newCertificate(chain, key string, log *slog.Logger) (*certificate, error) {
	c := &certificate{chain: chain, key: key, log: log, looked: time.Now()}
	c.written = c.changes()
	var err error
	c.now, err = readCertificate(chain, key)
	return c, err
}

// changes returns the modification time of each file, or the zero time for a missing file.
func (c *certificate) changes() (at [2]time.Time) {
	for i, path := range []string{c.chain, c.key} {
		if info, err := os.Stat(path); err == nil {
			at[i] = info.ModTime()
		}
	}
	return at
}

// get implements GetCertificate of tls.Config. If the new files do not work, get keeps the previous certificate,
// because one of the two files may not be written yet.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.looked) < certificateLook {
		return c.now, nil
	}
	c.looked = time.Now()
	written := c.changes()
	if written == c.written {
		return c.now, nil
	}
	c.written = written
	fresh, err := readCertificate(c.chain, c.key)
	if err != nil {
		c.log.Warn("the new TLS certificate cannot be used, the one before stays", "error", err)
		return c.now, nil
	}
	c.now = fresh
	c.log.Info("the TLS certificate was read again", "file", c.chain)
	return c.now, nil
}

func readCertificate(chainPath, keyPath string) (*tls.Certificate, error) {
	chain, err := readPEM("tls-cert", chainPath, "CERTIFICATE")
	if err != nil {
		return nil, err
	}
	key, err := readPEM("tls-key", keyPath, "PRIVATE KEY")
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(chain, key)
	if err != nil {
		return nil, badSetting("tls-cert", "%s with --tls-key=%s: %s", chainPath, keyPath, strings.TrimPrefix(err.Error(), "tls: "))
	}
	return &pair, nil
}

// readPEM reads a file, which must contain at least one PEM block whose type ends in want.
func readPEM(flag, path, want string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, badSetting(flag, "%w", err)
	}
	for rest := text; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return nil, badSetting(flag, "%s has no %s in PEM", path, strings.ToLower(want))
		}
		if strings.HasSuffix(block.Type, want) {
			return text, nil
		}
	}
}
