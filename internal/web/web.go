package web

import (
	"embed"
)

//go:embed templates assets
var files embed.FS

// A Pages is all pages. It is safe for concurrent use.
type Pages struct {
	*Site
	*Portal
}

// New makes the pages. It starts nothing: Run does.
func New(o Options, w Watcher) (*Pages, error) {
	site, err := newSite(o, files, functionsOfStaff)
	if err != nil {
		return nil, err
	}
	newGround(site)
	addAdmin(site)
	return &Pages{site, newPortal(site, w)}, nil
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
