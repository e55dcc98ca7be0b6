package plans

import "time"

// PortalLink contains the properties of a link that opens the portal pages of one customer.
type PortalLink struct {
	Customer    string
	Path        string // page that the link opens, /portal or below
	ReturnURL   string // target of the link back from the pages; empty if there is no such link
	EmbedOrigin string // site that may show the pages in a frame; empty if no site may
	Theme       string // ThemeAuto, ThemeLight or ThemeDark
}

// LinkLife is the time in which a link can be used, and SessionLife is the longest duration of the
// session that the link opens. A session without a request for SessionIdle ends earlier.
const (
	LinkLife    = 10 * time.Minute
	SessionLife = 8 * time.Hour
	SessionIdle = time.Hour
)

// The themes of pages: the theme of the browser, or a fixed theme.
const (
	ThemeAuto  = "auto"
	ThemeLight = "light"
	ThemeDark  = "dark"
)
