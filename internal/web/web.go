// Package web owns the pages: it puts the rooms below it together, and holds their templates and
// assets. The pages have no rules of limits or money of their own. A page asks the API within the
// process for all that it shows. So its numbers, errors and field names are those of the API, and what
// it changes is written down as a request's change is.
//
// No page changes anything at a GET. Every answer forbids scripts and styles from elsewhere.
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

// A Pages is all pages. It is safe for concurrent use.
type Pages struct {
	*page.Site
	*portal.Portal
}

// New makes the pages. It starts nothing: Run does.
func New(o page.Options, w portal.Watcher) (*Pages, error) {
	site, err := page.New(o, files, admin.Functions)
	if err != nil {
		return nil, err
	}
	playground.New(site)
	admin.Add(site)
	return &Pages{site, portal.New(site, w)}, nil
}

// Serves reports whether a path is one of the site's.
func Serves(path string) bool {
	for _, root := range []string{"/portal", "/admin", "/playground", "/assets"} {
		if path == root || len(path) > len(root) && path[:len(root)] == root && path[len(root)] == '/' {
			return true
		}
	}
	return false
}
