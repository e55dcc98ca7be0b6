package playground

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"quotad/internal/quota/model"
	"quotad/internal/quota/play"
	"quotad/internal/testkit"
	"quotad/internal/web/admin"
	"quotad/internal/web/page"
	"quotad/internal/web/parts"
	"quotad/internal/web/words"
)

// aPlayground is a site that has a playground and nothing else: no store, no API. So whatever it
// answers, it has stored and charged nothing.
func aPlayground(t *testing.T) opener {
	t.Helper()
	began := time.Now()
	s, err := page.New(page.Options{
		Now: func(context.Context) (int64, error) { return play.Epoch, nil }, Wall: func() time.Time { return began }, PlayTime: testkit.Patience,
		Log:     slog.New(slog.NewTextHandler(t.Output(), nil)),
		Trouble: func() string { return "" }, Why: func(d *model.Decision) string { return fmt.Sprintf("refused <b>%d</b>", d.Cost) },
	}, os.DirFS(".."), admin.Functions)
	if err != nil {
		t.Fatal(err)
	}
	return opener{s, New(s)}
}

type opener struct {
	*page.Site
	ground *Ground
}

func (s opener) opened(t *testing.T, path string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost"+path, nil)
	r.RemoteAddr = "127.0.0.1:5555"
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

func TestPlaygroundIsOpenAndKeepsNothing(t *testing.T) {
	s := aPlayground(t)
	w := s.opened(t, "/playground")
	body := w.Body.String()
	if w.Code != 200 || strings.Count(body, `<article class="play"`) != 4 || len(w.Result().Cookies()) != 0 {
		t.Fatalf("%d, cookies %v: %s", w.Code, w.Result().Cookies(), body)
	}
	if policy := w.Header().Get("Content-Security-Policy"); !strings.Contains(policy, "default-src 'none'") || strings.Contains(body, "style=") ||
		strings.Contains(body, "onclick") {
		t.Errorf("the policy is %q", policy)
	}
	if strings.Contains(body, "refused <b>") || !strings.Contains(body, "refused &lt;b&gt;1") {
		t.Error("the sentence of a refusal is not there, or not escaped")
	}
	if again := s.opened(t, "/playground"); again.Body.String() != body {
		t.Error("the same address shows something else")
	}
	if got := s.opened(t, "/playground/"); got.Code != 303 {
		t.Errorf("/playground/ answers %d", got.Code)
	}
}

// The page's numbers are the player's.
func TestPlaygroundShowsThePlay(t *testing.T) {
	s := aPlayground(t)
	for _, preset := range play.Presets() {
		body := s.opened(t, "/playground?"+presetAddress(&preset).Encode()).Body.String()
		if !regexp.MustCompile(`aria-current="true">` + preset.Name + `<`).MatchString(body) {
			t.Errorf("%s is not marked", preset.Name)
		}
		hits, err := preset.Traffic.Hits()
		if err != nil {
			t.Fatal(err)
		}
		l, _ := model.Compile(preset.Spec)
		for _, spec := range play.Variants(l.Limit, l.Window, preset.Spec.Burst) {
			limit, _ := model.Compile(spec)
			r, err := play.Play(t.Context(), []*model.Limit{limit}, play.Periods(parts.PlayInterval), hits, preset.Traffic.Length())
			if err != nil {
				t.Fatal(err)
			}
			want := fmt.Sprintf(`<b data-admitted>%s</b> admitted</span> <span><b data-refused>%s</b> refused`, words.Number(r.Admitted.Hits),
				words.Number(r.Refused.Hits))
			if !strings.Contains(body, want) {
				t.Errorf("%s by %s: the page does not say %s", preset.Name, spec.Algorithm, want)
			}
		}
	}
}

// What is wrong is told beside its field, and what was typed is kept.
func TestPlaygroundTellsWhatIsWrong(t *testing.T) {
	for _, c := range []struct{ field, value string }{
		{"limit", "-1"},
		{"limit", "many"},
		{"limit", "99999999999999999999"},
		{"limit", ""},
		{"window", "soon"},
		{"window", "0s"},
		{"window", "4000d"},
		{"capacity", "-1"},
		{"windows", "0"},
		{"windows", "61"},
		{"steady", "10001"},
		{"burst", "1e3"},
		{"cost", "0"},
		{"algorithm", "<script>"},
		{"pattern", "tide"},
	} {
		s := aPlayground(t)
		w := s.opened(t, "/playground?"+url.Values{c.field: {c.value}}.Encode())
		body := w.Body.String()
		said := regexp.MustCompile(`<p class="wrong" id="wrong-` + c.field + `" data-wrong="` + c.field + `">[^<]+</p>`).MatchString(body)
		if w.Code != 422 || !said || strings.Contains(body, `class="play"`) || strings.Contains(body, "<script>") {
			t.Errorf("%s=%s: %d, said %v", c.field, c.value, w.Code, said)
		}
		if c.field != "algorithm" && c.field != "pattern" && !strings.Contains(body, `value="`+c.value+`"`) {
			t.Errorf("%s=%s is not kept", c.field, c.value)
		}
	}
	for _, list := range []string{"a", "-1", "1x0", "1x", "0.1234567", "9999999999", "1 2 3600000", `"><script>`} {
		s := aPlayground(t)
		w := s.opened(t, "/playground?"+url.Values{"pattern": {"own"}, "hits": {list}}.Encode())
		if body := w.Body.String(); w.Code != 422 || !strings.Contains(body, `data-wrong="hits">`) || strings.Contains(body, "<script>") {
			t.Errorf("the hits %q: %d", list, w.Code)
		}
	}
	w := aPlayground(t).opened(t, "/playground?steady=10000&windows=60")
	if w.Code != 422 || !strings.Contains(w.Body.String(), "10,000 hits") {
		t.Errorf("too many hits: %d", w.Code)
	}
}

// The Hit button without script: the next address has one hit more.
func TestPlaygroundHits(t *testing.T) {
	s := aPlayground(t)
	to := "/playground?limit=2&window=10s&hit=1"
	for n := 1; n <= 3; n++ {
		w := s.opened(t, to)
		if w.Code != 303 {
			t.Fatalf("%s answers %d", to, w.Code)
		}
		to = w.Header().Get("Location")
		at, err := url.Parse(to)
		if err != nil || len(strings.Fields(at.Query().Get("hits"))) != n || at.Query().Has("hit") {
			t.Fatalf("hit %d leads to %s", n, to)
		}
		body := s.opened(t, to).Body.String()
		if says := map[bool]string{
			true:  " s is admitted.",
			false: "The hit at 2.000 s is refused, and would pass at 10.000 s.",
		}[n < 3]; !strings.Contains(body, says) {
			t.Errorf("hit %d: the page does not say %q", n, says)
		}
		to += "&hit=1"
	}
}

// An address may play so often a minute, and others still may.
func TestPlaygroundHasBounds(t *testing.T) {
	s := aPlayground(t)
	const path = "/playground?pattern=steady&steady=1&windows=1"
	refused := 0
	for range playsPerMinute + 60 {
		if w := s.opened(t, path); w.Code == http.StatusTooManyRequests {
			if refused++; w.Header().Get("Retry-After") == "" {
				t.Error("no Retry-After")
			}
		}
	}
	if refused == 0 {
		t.Error("nothing was refused")
	}
	other := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost"+path, nil)
	other.RemoteAddr = "127.0.0.2:1"
	w := httptest.NewRecorder()
	if s.ServeHTTP(w, other); w.Code != 200 {
		t.Errorf("another address is answered %d", w.Code)
	}
	for range playsAtOnce {
		s.ground.places <- struct{}{}
	}
	s.Options.PlayTime = 100 * time.Millisecond
	other.RemoteAddr = "127.0.0.3:1"
	w = httptest.NewRecorder()
	if s.ServeHTTP(w, other); w.Code != http.StatusServiceUnavailable {
		t.Errorf("without a place it is answered %d", w.Code)
	}
}

// The dearest page that may be asked for is made in time.
func TestPlaygroundsDearestPage(t *testing.T) {
	s := aPlayground(t)
	s.Options.PlayTime = 0
	if w := s.opened(t, "/playground?pattern=steady&limit=1000&window=1m&windows=10&steady=1000&burst=0"); w.Code != 200 && w.Code != 503 {
		t.Errorf("answered %d", w.Code)
	}
}

// A playground that has no place refuses. That is no defect, and no ERROR.
func TestBusyPlaygroundIsNoError(t *testing.T) {
	var log bytes.Buffer
	s := aPlayground(t)
	s.Options.Log = slog.New(slog.NewTextHandler(&log, nil))
	s.Options.PlayTime = 100 * time.Millisecond
	for range playsAtOnce {
		s.ground.places <- struct{}{}
	}
	if w := s.opened(t, "/playground"); w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "Many are playing") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if log.Len() > 0 {
		t.Errorf("logged %s", &log)
	}
}
