package plans

import "time"

// PortalLink is what a link into the portal opens: the pages of one customer.
type PortalLink struct {
	Customer    string
	Path        string // the page that it opens, /portal or below
	ReturnURL   string // where the pages lead back to; empty: nowhere
	EmbedOrigin string // the site that may show the pages in a frame; empty: none
	Theme       string // ThemeAuto, ThemeLight or ThemeDark
}

// LinkLife is how long a link can be used, and SessionLife how long the session lasts that it
// opens. Without a request for SessionIdle a session ends earlier.
const (
	LinkLife    = 10 * time.Minute
	SessionLife = 8 * time.Hour
	SessionIdle = time.Hour
)

// The themes of pages: the browser's own, or a fixed one.
const (
	ThemeAuto  = "auto"
	ThemeLight = "light"
	ThemeDark  = "dark"
)
