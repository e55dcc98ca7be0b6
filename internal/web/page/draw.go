package page

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"quotad/internal/plans"
	quotasession "quotad/internal/quota/session"
	"quotad/internal/web/words"
)

// A View is the response to a page request: a rendered template, a redirect, or a file.
type View struct {
	Status int    // 0 means 200
	Sheet  string // the template's file, without .html
	Layout string // the template around the sheet; if empty, v.layout() decides
	Title  string
	Tab    string // name of the current menu entry
	Live   bool   // the page opens an event stream
	Data   any

	To   string // target of a 303 redirect, instead of a sheet
	File *File  // instead of a sheet
}

// A File is a response body other than HTML pages, such as CSV.
type File struct {
	MediaType, Name string
	Body            []byte
	Shown           bool   // the browser shows the file instead of saving it
	Policy          string // Content-Security-Policy of the file, instead of the pages' policy
}

// A Message is a page with one short text. It is also an error, for requests whose page cannot be shown.
type Message struct {
	Status      int
	Title, Text string
	Link        *Link
	Again       bool // the message offers a link to the same page
}

// A Link is a link on a message page.
type Link struct{ Text, URL string }

func (m *Message) Error() string { return m.Title }

// A messageData is the data of the message template.
type messageData struct {
	Text  string
	Links []Link // the most relevant link first
	Again bool
}

// View returns the page that shows the message.
func (m *Message) View() *View {
	data := messageData{Text: m.Text, Again: m.Again}
	if m.Link != nil {
		data.Links = []Link{*m.Link}
	}
	return &View{Status: m.Status, Sheet: "message", Layout: "plain", Title: m.Title, Data: data}
}

// Messages that several pages show.
var (
	errSignedOut = &Message{Status: http.StatusUnauthorized, Title: "You are signed out", Text: "Go back to where you came from and open your usage again."}
	ErrMissing   = &Message{Status: http.StatusNotFound, Title: "There is no such page", Text: "The address may be mistyped, or the page has moved."}
	errLinkOver  = &Message{
		Status: http.StatusGone, Title: "This link has been used or is over",
		Text: "Links live 10 minutes and open once. Go back to where you found it and open your usage again.",
	}
	errForbidden = &Message{Status: http.StatusForbidden, Title: "This is not for you", Text: "Your key does not allow this page."}
	ErrNoText    = &Message{
		Status: http.StatusUnprocessableEntity, Title: "This could not be read",
		Text: "What was sent is not text in UTF-8. Go back and try again.",
	}
	errBusy = &Message{
		Status: http.StatusServiceUnavailable, Title: "This cannot be shown just now",
		Text: "What you have left still counts. Reload in a moment.", Again: true,
	}
	errBroken = &Message{
		Status: http.StatusInternalServerError, Title: "Something went wrong",
		Text: "It has been noted. Reload in a moment; if it stays, tell support when it happened.", Again: true,
	}
)

// MessageOf returns the message that explains an error. err must not be a Message itself.
func MessageOf(err error) *Message {
	problem, asked := ProblemOf(err)
	switch {
	case asked && problem.Status == http.StatusNotFound:
		return ErrMissing
	case asked && problem.Status == http.StatusForbidden:
		return errForbidden
	case asked && problem.Status == http.StatusServiceUnavailable, errors.Is(err, quotasession.ErrUnavailable),
		errors.Is(err, quotasession.ErrNoSession), errors.Is(err, quotasession.ErrBusy), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return errBusy
	case asked && problem.Status < http.StatusInternalServerError:
		return &Message{Status: problem.Status, Title: problem.Title, Text: words.Said(problem, words.PathWords), Again: true}
	case errors.Is(err, plans.ErrLinkOver):
		return errLinkOver
	}
	return errBroken
}

// sheets maps the name of a page's template file to its template.
type sheets map[string]*template.Template

// loadSheets parses each file in templates/pages together with all files in templates/shared, which contain the
// layouts and the shared parts. more contains additional template functions.
func loadSheets(files fs.FS, a *assets, more template.FuncMap) (sheets, error) {
	shared, err := template.New("").Funcs(functions(a)).Funcs(more).ParseFS(files, "templates/shared/*.html")
	if err != nil {
		return nil, err
	}
	names, err := fs.Glob(files, "templates/pages/*.html")
	if err != nil {
		return nil, err
	}
	all := sheets{}
	for _, name := range names {
		own, err := shared.Clone()
		if err == nil {
			own, err = own.ParseFS(files, name)
		}
		if err != nil {
			return nil, err
		}
		all[strings.TrimSuffix(path.Base(name), ".html")] = own
	}
	return all, nil
}

func functions(a *assets) template.FuncMap {
	return template.FuncMap{
		"asset":      a.url,
		"number":     words.Number,
		"bar":        words.Bar,
		"portalTabs": portalTabs,
		"adminTabs":  adminTabs,
		"pair":       newPair,
		"next":       func(n int) int { return n + 1 },
		"has":        slices.Contains[[]string],
	}
}

// A pair combines two values as the data of one part of a page.
type pair struct{ A, B any }

func newPair(a, b any) pair { return pair{a, b} }

// A frame is the data of a page's layout: the title, the menu, and everything else around the page's own
// content.
type frame struct {
	Title, Tab  string
	Brand       *Brand
	Who         string // the portal's customer, or the name of the signed-in key
	Scope       string
	Theme       string
	Back        string // address of the portal's back link
	Now         string // the page's present time, for countdowns
	AsOf        string // the same time as text for people
	Zone        string // IANA name of the zone of all times on the page
	ZoneText    string // the zone as text for people
	Clock       string // key of the customer's test clock, which does not advance by itself
	Archived    bool
	Live        bool
	Trouble     string // the reason why hits are not counted at present
	Plan        string
	PlanVersion int
}

// sheetData is the data that every template receives.
type sheetData struct {
	Frame *frame
	Data  any
}

// layout returns the name of the layout around a visit's pages.
func (v *Visit) layout() string {
	switch {
	case v.Customer != nil:
		return "portal"
	case v.Session != nil:
		return "admin"
	}
	return "plain"
}

func (v *Visit) frame(shown *View, now time.Time) *frame {
	f := &frame{
		Title: shown.Title, Tab: shown.Tab, Brand: &v.Site.Options.Brand, Live: shown.Live,
		Now: now.UTC().Format("2006-01-02T15:04:05.000Z"), AsOf: now.In(v.Zone).Format("15:04:05"), Zone: v.Zone.String(), ZoneText: words.ZoneText(now, v.Zone),
		Who: v.As.KeyName, Scope: string(v.As.Scope), Trouble: v.Site.Options.Trouble(),
	}
	f.Theme, f.Back = v.Look.Theme, v.Look.Back
	if c := v.Customer; c != nil {
		f.Who, f.Plan, f.PlanVersion, f.Archived = cmp.Or(c.Name, c.Key), c.Plan, c.EffectiveVersion, c.ArchivedAt != nil
	}
	if v.OnTestClock() {
		f.Clock = *v.about.TestClock
	}
	return f
}

// draw writes a view as the response. If the view cannot be rendered, draw writes an error message instead.
func (s *Site) draw(w http.ResponseWriter, v *Visit, shown *View) {
	h := w.Header()
	Protect(h, v.Look.Embed)
	switch {
	case shown.To != "":
		h.Set("Location", shown.To)
		w.WriteHeader(http.StatusSeeOther)
		return
	case shown.File != nil:
		h.Set("Content-Type", shown.File.MediaType)
		if shown.File.Policy != "" {
			h.Set("Content-Security-Policy", shown.File.Policy)
		}
		if !shown.File.Shown {
			h.Set("Content-Disposition", "attachment; filename="+strconv.Quote(shown.File.Name))
		}
		s.send(w, v.R, http.StatusOK, shown.File.Body)
		return
	}
	body, err := s.render(v, shown)
	if err != nil {
		s.Options.Log.Warn("page cannot be drawn", "request_id", v.RequestID, "path", v.R.URL.Path, "error", err)
		shown = errBroken.View()
		body, _ = s.render(v, shown)
	}
	if shown.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Cookie realm="pages"`)
	}
	h.Set("Content-Type", "text/html; charset=utf-8")
	s.send(w, v.R, cmp.Or(shown.Status, http.StatusOK), body)
}

func (s *Site) render(v *Visit, shown *View) ([]byte, error) {
	now, err := v.Now()
	if err != nil {
		now = s.Options.Wall() // the page shows a time in an outage, too
	}
	sheet := s.sheets[shown.Sheet]
	if sheet == nil {
		return nil, fmt.Errorf("there is no sheet %q", shown.Sheet)
	}
	var all bytes.Buffer
	err = sheet.ExecuteTemplate(&all, cmp.Or(shown.Layout, v.layout()), sheetData{v.frame(shown, now), shown.Data})
	return all.Bytes(), err
}

// smallBody is the size in bytes below which a body is not compressed.
const smallBody = 1000

// send writes a body, compressed if the browser accepts gzip. Compression is safe because pages contain no
// secret that another site could guess from their length.
func (s *Site) send(w http.ResponseWriter, r *http.Request, status int, body []byte) {
	h := w.Header()
	h.Add("Vary", "Accept-Encoding")
	if len(body) >= smallBody && takesGzip(r) {
		h.Set("Content-Encoding", "gzip")
		body = compress(body, gzip.DefaultCompression)
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) //nolint:gosec // templates escaped it; an error means that the browser is gone
}

func takesGzip(r *http.Request) bool {
	for part := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		name, q, _ := strings.Cut(strings.TrimSpace(part), ";")
		if name == "gzip" && strings.TrimSpace(q) != "q=0" {
			return true
		}
	}
	return false
}

func compress(body []byte, level int) []byte {
	var all bytes.Buffer
	w, _ := gzip.NewWriterLevel(&all, level) // the level is a valid constant, so there is no error
	_, _ = w.Write(body)                     // writes to a buffer never fail
	_ = w.Close()
	return all.Bytes()
}

// Sheet returns the page template with the given file name, without its extension.
func (s *Site) Sheet(name string) *template.Template { return s.sheets[name] }

// policy returns the Content-Security-Policy of a page. ancestors lists the sites that may embed the page in a
// frame. If ancestors is empty, no site may.
func policy(ancestors string) string {
	if ancestors == "" {
		ancestors = "'none'"
	}
	return "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors " + ancestors
}

// Protect sets the security headers of a page.
func Protect(h http.Header, ancestors string) {
	h.Set("Content-Security-Policy", policy(ancestors))
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
}
