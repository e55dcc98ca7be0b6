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

// View is the response of a page: a template with data, a redirect, or a file.
type View struct {
	Status int    // 0 means 200
	Sheet  string // the template's file, without .html
	Layout string // layout around the page; empty for the layout that matches the page's visitors
	Title  string
	Tab    string // the open entry of the menu
	Live   bool   // the page has a stream
	Data   any

	To   string // target of a redirect (303), which replaces a template
	File *File  // replaces a template
}

// File is a body that is not a page, such as CSV.
type File struct {
	MediaType, Name string
	Body            []byte
	Shown           bool   // shown and not saved
	Policy          string // policy of a shown file, which replaces a page's policy
}

// Message is a page with a single message. It is also an error if the requested page cannot be shown.
type Message struct {
	Status      int
	Title, Text string
	Link        *Link
	Again       bool // the message offers a link to the same page
}

// Link is a link to a further page.
type Link struct{ Text, URL string }

func (m *Message) Error() string { return m.Title }

// messageData is the data of a message's template.
type messageData struct {
	Text  string
	Links []Link // links to further pages, the nearest first
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

// The messages that several pages use.
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

// MessageOf returns the message for an error that is not a Message.
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

// sheets contains the templates of pages by file name.
type sheets map[string]*template.Template

// loadSheets parses each file of templates/pages together with all files of templates/shared, which contain the
// layouts and common parts. more contains additional template functions.
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

// pair contains two values from which a part of a page is drawn.
type pair struct{ A, B any }

func newPair(a, b any) pair { return pair{a, b} }

// frame is the data of the layout around a page.
type frame struct {
	Title, Tab  string
	Brand       *Brand
	Who         string // owner of the pages, or the signed-in user
	Scope       string
	Theme       string
	Back        string // target of the portal's link back
	Now         string // time of the page's clock, for countdowns
	AsOf        string // the same for people
	Zone        string // IANA timezone of all times on the page
	ZoneText    string // for people
	Clock       string // stopped test clock of the page's customer
	Archived    bool
	Live        bool
	Trouble     string // reason why hits are not counted now
	Plan        string
	PlanVersion int
}

// sheetData is the data of a template.
type sheetData struct {
	Frame *frame
	Data  any
}

// layout returns the layout around the pages of a visit.
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

// draw writes the response with a view. If a page cannot be drawn, draw writes a message.
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
		now = s.Options.Wall() // the page of an outage shows a time, too
	}
	sheet := s.sheets[shown.Sheet]
	if sheet == nil {
		return nil, fmt.Errorf("there is no sheet %q", shown.Sheet)
	}
	var all bytes.Buffer
	err = sheet.ExecuteTemplate(&all, cmp.Or(shown.Layout, v.layout()), sheetData{v.frame(shown, now), shown.Data})
	return all.Bytes(), err
}

// smallBody is the size in bytes below which compression is not worth its cost.
const smallBody = 1000

// send writes a body, compressed if the browser supports that. Compression is safe, because pages contain no
// secret that another site could infer from their length.
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
	w, _ := gzip.NewWriterLevel(&all, level) // the level is a constant of the package
	_, _ = w.Write(body)                     // writing to a buffer never fails
	_ = w.Close()
	return all.Bytes()
}

// Sheet returns the template of pages with a file name.
func (s *Site) Sheet(name string) *template.Template { return s.sheets[name] }

// policy returns the Content-Security-Policy of a page. ancestors may show the page in a frame; if ancestors is
// empty, no site may.
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
