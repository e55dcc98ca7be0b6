// Package web owns the web pages: it combines the packages below it and contains their templates and assets. The
// pages have no rules for limits or money of their own, because every page gets its data from the API within the
// process. Therefore numbers, errors and field names are the same as in the API, and changes are recorded in the
// audit log like changes by requests.
//
// A GET request never changes anything. Every response forbids scripts and styles from other sites.
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

// A Pages serves all pages. It is safe for concurrent use.
type Pages struct {
	*page.Site
	*portal.Portal
}

// New returns the pages. It starts nothing in the background; Run does.
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
