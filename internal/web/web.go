// Package web owns the pages. It assembles the rooms below it, and contains their templates and assets. The
// pages have no rules about limits or money of their own. They request all data from the API within the process.
// Therefore their numbers, errors and field names are those of the API, and their changes are recorded like
// changes by requests.
//
// No page changes anything in a GET. Every response forbids scripts and styles from other sites.
package web

import (
	"embed"

	"quotad/internal/web/admin"
	"quotad/internal/web/page"
	"quotad/internal/web/playground"
	"quotad/internal/web/portal"
)

//go:embed templates assets
var files embed.FS

// Pages serves all pages. It is safe for concurrent use.
type Pages struct {
	*page.Site
	*portal.Portal
}

// New returns the pages. It starts nothing; call Run for that.
func New(o page.Options, w portal.Watcher) (*Pages, error) {
	site, err := page.New(o, files, admin.Functions)
	if err != nil {
		return nil, err
	}
	playground.New(site)
	admin.Add(site)
	return &Pages{site, portal.New(site, w)}, nil
}

// Serves reports whether a path belongs to the pages.
func Serves(path string) bool {
	for _, root := range []string{"/portal", "/admin", "/playground", "/assets"} {
		if path == root || len(path) > len(root) && path[:len(root)] == root && path[len(root)] == '/' {
			return true
		}
	}
	return false
}
