package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// pages is what open pages take from hits, and how long the server needs for a page.
type pages struct {
	Watched int
	Alone   spread  // a second, of the first row's load
	Quiet   spread  // share of it beside open pages of customers that nobody hits
	Busy    spread  // the same, of customers that the load hits
	Drawn   float64 // parts sent a second, in all, while the load hit them
	Times   []pageTime
}

// pageTime is how long one page takes, by one client alone, ms.
type pageTime struct {
	Page  string
	Bytes int // not compressed
	P50   float64
	P95   float64
	Most  float64 // what p95 should be at most
}

// String is a table.
func (p *pages) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d open pages beside hits: %.3f of their rate (%.3f–%.3f), and %.3f (%.3f–%.3f) where the hits are on the customers of the pages, which are sent %.0f parts a second. Alone: %s hits/s.\n",
		p.Watched, p.Quiet.Median, p.Quiet.Min, p.Quiet.Max, p.Busy.Median, p.Busy.Min, p.Busy.Max, p.Drawn, whole(p.Alone.Median))
	b.WriteString("| page | bytes | p50, ms | p95, ms | aimed at |\n| --- | --- | --- | --- | --- |\n")
	for _, t := range p.Times {
		fmt.Fprintf(&b, "| %s | %s | %.1f | %.1f | ≤ %.0f |\n", t.Page, whole(float64(t.Bytes)), t.P50, t.P95, t.Most)
	}
	return b.String()
}

// What p95 should be, ms: of a page, and of one with 1,000 limits or 10,000 customers behind it.
const (
	aimOfPage  = 20
	aimOfLarge = 200
)

// maxWatched is how many streams a node has.
const maxWatched = 1000

// quietSet are customers that the main row's load does not hit.
const quietSet = "one"

// watchPages measures the main row's load without and with so many open pages, in turn, and then the
// pages.
func (b *bench) watchPages(ctx context.Context) error {
	r := mainRowOf()
	if err := b.service.scale(ctx, 1); err != nil {
		return err
	}
	for _, set := range []string{r.set, quietSet} {
		if err := b.makeSet(ctx, set); err != nil {
			return err
		}
	}
	quiet, err := b.visitors(ctx, quietSet, b.watched)
	if err != nil {
		return err
	}
	busy, err := b.visitors(ctx, r.set, b.watched)
	if err != nil {
		return err
	}
	m := &match{row: r, single: r, subject: []string{b.service.nodes[0].address}}
	if _, err := b.warmRow(ctx, m); err != nil {
		return err
	}
	got := &pages{Watched: b.watched}
	var rates [3][]float64
	for i := range b.rounds {
		for j := range rates { // each of them first at times, for the machine's speed moves
			which := (i + j) % len(rates)
			rate, drawn, err := b.loadWatched(ctx, m, [][]*visitor{nil, quiet, busy}[which])
			if err != nil {
				return err
			}
			rates[which] = append(rates[which], rate)
			if which == 2 {
				got.Drawn += drawn / float64(b.rounds)
			}
		}
	}
	got.Alone, got.Quiet, got.Busy = spreadOf(rates[0]), spreadOf(shares(rates[1], rates[0])), spreadOf(shares(rates[2], rates[0]))
	if got.Times, err = b.timePages(ctx); err != nil {
		return err
	}
	_, err = fmt.Fprint(b.out, got)
	return err
}

func shares(of, by []float64) (all []float64) {
	for i := range of {
		all = append(all, per(of[i], by[i]))
	}
	return all
}

// loadWatched is a run of the load while visitors look at their first pages.
func (b *bench) loadWatched(ctx context.Context, m *match, open []*visitor) (rate, drawn float64, err error) {
	watching, over := context.WithCancel(ctx)
	defer over()
	var parts, ended atomic.Int64
	for _, v := range open {
		if err := v.watch(watching, &parts, &ended); err != nil {
			return 0, 0, err
		}
	}
	if len(open) > 0 {
		if err := settled(watching); err != nil {
			return 0, 0, err
		}
	}
	before := parts.Load()
	run, err := b.load(ctx, m, m.row, m.subject, b.each)
	if err == nil && ended.Load() > 0 {
		err = fmt.Errorf("%w: %d of %d streams ended", errPages, ended.Load(), len(open))
	}
	drawn = per(float64(parts.Load()-before), run.took.Seconds())
	over()
	return run.rate(), drawn, errors.Join(err, pause(ctx))
}

// opening is how long open pages need before they ask for no more than open pages do. A node's pages
// take turns, 50 a second, and each asks for its slow parts when it opens.
const opening = 15 * time.Second

// settled returns when pages that were opened just now have what they ask for at first.
func settled(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(opening):
		return nil
	}
}

var errPages = errors.New("pages are not what they should be")

// A visitor is a browser with a session.
type visitor struct {
	client *http.Client
	root   string
	cookie string
}

// visitors open the portals of the first customers of a set.
func (b *bench) visitors(ctx context.Context, set string, n int) (all []*visitor, err error) {
	for i := range n {
		v, err := b.enter(ctx, customerKey(set, i))
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, nil
}

func (b *bench) enter(ctx context.Context, customer string) (*visitor, error) {
	text, err := b.service.call(ctx, "POST", "/v1/portal-sessions", fmt.Sprintf(`{"customer":%q}`, customer))
	if err != nil {
		return nil, err
	}
	var link struct{ URL string }
	if err := json.Unmarshal(text, &link); err != nil {
		return nil, err
	}
	to, err := url.Parse(link.URL)
	if err != nil {
		return nil, err
	}
	return b.visitor(ctx, to.Path, nil)
}

// visitor posts a form that begins a session.
func (b *bench) visitor(ctx context.Context, path string, form url.Values) (*visitor, error) {
	v := &visitor{
		root: "http://" + b.service.nodes[0].address,
		client: &http.Client{
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
			Transport:     &http.Transport{DisableCompression: true},
		},
	}
	response, err := v.send(ctx, "POST", path, form)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	cookies := response.Cookies()
	if response.StatusCode != http.StatusSeeOther || len(cookies) != 1 {
		return nil, fmt.Errorf("%w: %s is answered %s", errPages, path, response.Status)
	}
	v.cookie = cookies[0].Name + "=" + cookies[0].Value
	return v, nil
}

func (v *visitor) send(ctx context.Context, method, path string, form url.Values) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, v.root+path, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Sec-Fetch-Site", "same-origin")
	if v.cookie != "" {
		request.Header.Set("Cookie", v.cookie)
	}
	return v.client.Do(request)
}

// get is a page, which must be answered.
func (v *visitor) get(ctx context.Context, path string) (size int, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestWait)
	defer cancel()
	response, err := v.send(ctx, "GET", path, nil)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	n, err := io.Copy(io.Discard, response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%w: %s is answered %s", errPages, path, response.Status)
	}
	return int(n), err
}

// watch opens the stream of the first page and reads it until ctx ends. It returns when the first part
// has come. parts counts them all; ended counts streams that ended before ctx.
func (v *visitor) watch(ctx context.Context, parts, ended *atomic.Int64) error {
	response, err := v.send(ctx, "GET", "/portal/live", nil) //nolint:bodyclose // the goroutine closes it
	if err != nil {
		return err
	}
	lines := bufio.NewReaderSize(response.Body, 1<<16)
	first, err := lines.ReadString('\n')
	if err != nil || !strings.HasPrefix(first, "data: ") {
		return errors.Join(fmt.Errorf("%w: a stream begins with %q", errPages, first), err, response.Body.Close())
	}
	parts.Add(1)
	go func() {
		defer response.Body.Close()
		named := false // the event that is being read
		for {
			line, err := lines.ReadSlice('\n')
			switch {
			case err != nil:
				if ctx.Err() == nil {
					ended.Add(1)
				}
				return
			case line[0] == 'e': // event:
				named = true
			case line[0] == '\n':
				if !named {
					parts.Add(1)
				}
				named = false
			}
		}
	}()
	return nil
}

// pagesTimed is how often each page is asked for; the first of them do not count.
const pagesTimed, pagesWarm = 400, 40

// timePages asks for pages, one after the other, while nothing else is done.
func (b *bench) timePages(ctx context.Context) (all []pageTime, err error) {
	if err := b.makePages(ctx); err != nil {
		return nil, err
	}
	staff, err := b.visitor(ctx, "/admin/sign-in", url.Values{"key": {b.service.admin}})
	if err != nil {
		return nil, err
	}
	visitors := map[string]*visitor{"": staff}
	for _, p := range timedPages {
		if visitors[p.as] == nil {
			if visitors[p.as], err = b.enter(ctx, p.as); err != nil {
				return nil, err
			}
		}
		took := hdrhistogram.New(1, 60_000_000, 3)
		t := pageTime{Page: p.name, Most: p.aim}
		for i := range pagesTimed + pagesWarm {
			began := time.Now()
			if t.Bytes, err = visitors[p.as].get(ctx, p.path); err != nil {
				return nil, err
			}
			if i >= pagesWarm {
				err = took.RecordValue(time.Since(began).Microseconds())
			}
		}
		t.P50, t.P95 = float64(took.ValueAtQuantile(50))/1e3, float64(took.ValueAtQuantile(95))/1e3
		all = append(all, t)
	}
	return all, err
}
