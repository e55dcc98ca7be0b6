package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// The handler answers with the very status, headers and bytes that it was given.
func TestAnswerIsTheRealOne(t *testing.T) {
	t.Parallel()
	original := serveTest(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" {
			w.WriteHeader(http.StatusUnauthorized)
		}
		w.Header().Set("RateLimit", `"hourly";r=1;t=2`)
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(429)
		_, _ = w.Write([]byte(`{"allowed":false}`))
	})
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	request := templateOf(&row{set: "hot"}, "secret", "run")
	first, err := ask(context.Background(), client, original, request)
	if err != nil || first.Status != 429 || string(first.Body) != `{"allowed":false}` {
		t.Fatalf("%+v %v", first, err)
	}
	second, err := ask(context.Background(), client, serveTest(t, first.ServeHTTP), request)
	if err != nil || !reflect.DeepEqual(first, second) {
		t.Errorf("%+v %v\nnot %+v", second, err, first)
	}
}

func TestContrastAnswers(t *testing.T) {
	t.Parallel()
	var asked string
	allowed, failure := true, error(nil)
	c := &contrast{
		answer: &answer{Status: 200, Body: []byte("yes")},
		allow:  func(_ context.Context, customer string) (bool, error) { asked = customer; return allowed, failure },
	}
	send := func(body string) int {
		w := httptest.NewRecorder()
		c.ServeHTTP(w, httptest.NewRequest("POST", "/v1/hits", strings.NewReader(body)))
		return w.Code
	}
	const hit = `{"customer":"two-1","meter":"requests"}`
	if got := send(hit); got != 200 || asked != "two-1" {
		t.Errorf("%d for %q", got, asked)
	}
	if allowed = false; send(hit) != 429 {
		t.Error("what is not allowed is not refused")
	}
	if failure = errors.New("gone"); send(hit) != 500 {
		t.Error("a failure is not told")
	}
	if send(`{}`) != 400 {
		t.Error("a hit of nobody")
	}
}

func TestChildren(t *testing.T) {
	t.Parallel()
	c, err := spawn("sleep", exec.Command("sleep", "60"))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.alive(); err != nil {
		t.Error(err)
	}
	began := time.Now()
	if err := c.stop(); err != nil || time.Since(began) > 10*time.Second {
		t.Errorf("%v after %s", err, time.Since(began))
	}
	log := filepath.Join(t.TempDir(), "log")
	c, err = spawnLogged("sh", log, exec.Command("sh", "-c", "echo because >&2; exit 3"))
	if err != nil {
		t.Fatal(err)
	}
	<-c.ended
	if err := c.alive(); err == nil || !strings.Contains(err.Error(), "because") || !strings.Contains(err.Error(), "status 3") {
		t.Errorf("why it ended: %v", err)
	}
	if _, err := spawn("nothing", exec.Command("/nonexistent")); err == nil {
		t.Error("there is no such program")
	}
}

// A child is waited for until it answers, and not for longer than it lives.
func TestAwait(t *testing.T) {
	t.Parallel()
	c, err := spawn("sleep", exec.Command("sleep", "60"))
	if err != nil {
		t.Fatal(err)
	}
	asked, silent := 0, errors.New("nobody there")
	third := func() error {
		if asked++; asked < 3 {
			return silent
		}
		return nil
	}
	if err := c.await(t.Context(), time.Minute, third); err != nil || asked != 3 {
		t.Errorf("asked %d times: %v", asked, err)
	}
	never := func() error { return silent }
	if err := c.await(t.Context(), askEvery, never); !errors.Is(err, silent) {
		t.Errorf("it never answers: %v", err)
	}
	if err := c.stop(); err != nil {
		t.Error(err)
	}
	if err := c.await(t.Context(), time.Minute, never); err == nil || !strings.Contains(err.Error(), "ended by itself") {
		t.Errorf("it is gone: %v", err)
	}
}

func TestTempDir(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	dir, err := tempDir(parent)
	if inMemory(parent) {
		if err == nil {
			t.Error("a directory in memory is taken")
		}
		return
	}
	info, statErr := os.Stat(dir)
	if err != nil || statErr != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("%s: %v %v", dir, err, statErr)
	}
}
