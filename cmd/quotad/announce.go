package main

import (
	"fmt"
	"path/filepath"
	"strings"
)

// announce prints to stdout, once per start, everything a person needs to begin: the URL, the admin key and,
// with --demo, a first request. It never logs the key, because logs are kept and other people read them.
func (n *node) announce(s *settings, key adminKey) error {
	var b strings.Builder
	url := n.url
	if s.PublicURL != "" {
		url = strings.TrimSuffix(s.PublicURL, "/")
	}
	fmt.Fprintf(&b, "\nquotad %s serves on %s\nDocumentation: %s/docs\nPlans, customers and charges are in %s\n", version, n.url, url, s.place())
	switch {
	case key.made && !s.Demo:
		fmt.Fprintf(&b, "\nAdmin key, shown only this once; keep it:\n\n    %s\n", key.secret)
	case key.secret != "":
		fmt.Fprintf(&b, "\nAdmin key of the demo (kept in %s):\n\n    %s\n", keyFile(s), key.secret)
	}
	if s.Demo {
		secret := key.secret
		if secret == "" {
			// The operator's own key is in the environment or in a file, so the output does not repeat the key.
			secret = "'\"$QUOTAD_ADMIN_KEY\"'"
		}
		fmt.Fprintf(&b, "\nTry it:\n\ncurl -s %s/v1/hits \\\n  -H 'Authorization: Bearer %s' \\\n  -H 'Content-Type: application/json' \\\n  -d '{\"customer\":\"%s\",\"meter\":\"%s\"}'\n",
			n.url, secret, demoCustomer, demoMeter)
	}
	if s.Demo && key.secret != "" {
		fmt.Fprintf(&b, "\nFor the commands of README.md:\n\nURL=%s\nKEY=$(cat '%s')\n", n.url, keyFile(s))
	}
	b.WriteString("\n")
	if _, err := fmt.Fprint(s.out(), b.String()); err != nil && key.made {
		// quotad stores only a hash of the key. If this print fails, nobody ever learns the key.
		return fmt.Errorf("print the admin key: %w", err)
	}
	return nil
}

// keyFile returns the path of the file that contains the demo's admin key. The path is absolute, so that it
// works from any directory.
func keyFile(s *settings) string {
	path := filepath.Join(s.dataDir(), demoKeyFile)
	if whole, err := filepath.Abs(path); err == nil {
		return whole
	}
	return path
}
