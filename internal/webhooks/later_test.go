package webhooks

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"quotad/internal/events"
	"quotad/internal/testkit"
)

// A node that is killed between a commit and the delivery, or between that and the note of it, loses
// nothing: others send it, under one id, when its lease is over.
func TestKilledBetweenCommitAndDelivery(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	to := receive(t, nil)
	id, _ := w.creates(to.URL)
	w.happens(events.PlanPublished, 2)
	killed := w.sender()
	due, err := killed.take(t.Context(), nil, nil)
	if err != nil || len(due) != 2 {
		t.Fatal(due, err)
	}
	o := killed.clients.post(t.Context(), to.URL, [][]byte{due[0].Secret}, fmt.Sprint(due[0].Event.ID), time.Now(), []byte("{}"))
	if o.failed != "" { // it was received, and then the node was killed
		t.Fatal(o)
	}
	later, _ := w.creates(receive(t, nil).URL)
	w.happens(events.PlanPublished, 1)
	w.exec(`DELETE FROM deliveries WHERE event = 3 AND webhook = $1`, id)
	other := w.sender()
	w.runs(other)
	// The look that found this one takes all that are due.
	w.becomes(later, "3 delivered 1 200")
	w.becomes(id, "1 waiting 1 -, 2 waiting 1 -")
	if n := len(to.all()); n != 1 {
		t.Errorf("%d were sent while the lease runs", n)
	}
	w.exec(`UPDATE deliveries SET due_at = clock_timestamp()`) // the lease is over
	w.becomes(id, "1 delivered 2 200, 2 delivered 2 200")
	if got := to.ids(); got != "1 2" {
		t.Errorf("received %s", got)
	}
	due[0].outcome, due[1].outcome = outcome{status: 204}, outcome{failed: "late"}
	if err := killed.noteAll(t.Context(), id, []*taken{&due[0], &due[1]}); err != nil {
		t.Error(err)
	}
	w.becomes(id, "1 delivered 2 200, 2 delivered 2 200") // whoever has lost its lease notes nothing
}

// Several nodes send each event once, while nothing fails.
func TestNodesShareTheWork(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	to := receive(t, nil)
	id, _ := w.creates(to.URL)
	for range 3 {
		w.runs(w.sender())
	}
	for range 20 {
		w.happens(events.PlanPublished, 10)
	}
	testkit.Eventually(t, "all to be delivered", func() bool {
		return w.says(`SELECT count(*)::text FROM deliveries WHERE webhook = $1 AND state = 'delivered'`, id) == "200"
	})
	if n := len(to.all()); n != 200 {
		t.Errorf("%d were sent", n)
	}
}

// A failed delivery is tried again, for a day. Then it is dead. Where that happens after 5 days in which
// nothing was taken, the webhook is disabled, and what waits is dead. A test that is taken enables it.
func TestRetriedForADay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	to, others := receive(t, nil), receive(t, nil)
	id, _ := w.creates(to.URL)
	w.creates(others.URL, events.WebhookDisabled)
	to.answers(503)
	sender := w.sender()
	stop := w.runs(sender)
	w.happens(events.PlanPublished, 1)
	w.becomes(id, "1 waiting 1 503")
	if got := w.says(`SELECT (due_at - last_at <= interval '1 hour 5 s')::text FROM deliveries`); got != "true" {
		t.Error("it is tried later than it should be")
	}
	const failing = `SELECT (failing_since IS NOT NULL)::text FROM webhooks WHERE id = $1`
	to.answers(200)
	if is, err := sender.Test(t.Context(), id); err != nil || is.Enabled || w.says(failing, id) != "false" {
		t.Error("a test that was accepted leaves the webhook failing", is, err)
	}
	to.answers(500) // an attempt is counted when it begins; its answer shows that it is over
	w.exec(`UPDATE deliveries SET due_at = clock_timestamp()`)
	w.becomes(id, "1 waiting 2 500")
	to.answers(503)
	w.exec(`UPDATE deliveries SET due_at = clock_timestamp(), since = since - interval '1 day'`)
	w.becomes(id, "1 dead 3 503")
	w.happens(events.PlanPublished, 1)
	w.becomes(id, "1 dead 3 503, 2 waiting 1 503")
	if got := w.says(`SELECT (disabled_at IS NULL)::text FROM webhooks WHERE id = $1`, id); got != "true" {
		t.Error("it is disabled after a day")
	}
	w.happens(events.PlanPublished, 1)
	w.becomes(id, "1 dead 3 503, 2 waiting 1 503, 3 waiting 1 503")
	w.exec(`UPDATE webhooks SET failing_since = failing_since - interval '5 days'`)
	w.exec(`UPDATE deliveries SET due_at = clock_timestamp(), since = since - interval '1 day' WHERE event = 2`)
	w.becomes(id, "1 dead 3 503, 2 dead 2 503, 3 dead 1 503")
	w.number()
	testkit.Eventually(t, "the others to hear of it", func() bool { return len(others.all()) == 1 })
	if got := others.all()[0].body; !strings.Contains(got, `"webhook.disabled"`) || !strings.Contains(got, `"failing"`) || !strings.Contains(got, id) {
		t.Error(got)
	}
	w.happens(events.PlanPublished, 1)
	if got := w.says(states, id); strings.Contains(got, "5 ") {
		t.Errorf("a disabled one is sent %s", got)
	}
	if _, err := w.hooks.Replay(t.Context(), id, 0, time.Now().Add(time.Hour).UnixMicro()); !errors.Is(err, ErrDisabled) {
		t.Error(err)
	}
	if is, err := sender.Test(t.Context(), id); err != nil || is.Enabled || is.Status != 503 {
		t.Error(is, err)
	}
	to.answers(204)
	if is, err := sender.Test(t.Context(), id); err != nil || !is.Enabled || is.Failed != "" {
		t.Error(is, err)
	}
	again, err := w.hooks.Replay(t.Context(), id, 0, time.Now().Add(time.Hour).UnixMicro())
	if err != nil || again != 5 {
		t.Error(again, err)
	}
	w.becomes(id, "1 delivered 1 204, 2 delivered 1 204, 3 delivered 1 204, 4 delivered 1 204, 5 delivered 1 204")
	if delivered, failed, dead := sender.Sent(); delivered != 6 || failed < 5 || dead != 2 {
		t.Errorf("counted %d, %d, %d", delivered, failed, dead)
	}
	stop()
}

// 410 disables at once.
func TestGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	to := receive(t, nil)
	id, _ := w.creates(to.URL)
	to.answers(410)
	w.happens(events.PlanPublished, 1)
	w.runs(w.sender())
	w.becomes(id, "1 dead 1 410")
	if got := w.says(`SELECT disabled_for FROM webhooks`); got != Gone {
		t.Error(got)
	}
	if err := w.hooks.Delete(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if got := w.says(`SELECT count(*)::text FROM deliveries`); got != "0" {
		t.Errorf("%s deliveries are left", got)
	}
}

// sending is a function that sends a request.
type sending func(*http.Request) (*http.Response, error)

func (f sending) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A delivery whose answer has come while the node stops is noted: it is not sent again.
func TestAnsweredWhileTheNodeStops(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	to := receive(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte("x"))
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done() // the body never ends
	})
	id, _ := w.creates(to.URL)
	s := w.sender()
	w.happens(events.PlanPublished, 1)
	due, err := s.take(t.Context(), nil, nil)
	if err != nil || len(due) != 1 {
		t.Fatal(due, err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	s.underWay[id]++
	send := s.clients.plain.Transport
	s.clients.plain.Transport = sending(func(r *http.Request) (*http.Response, error) {
		defer stop()
		return send.RoundTrip(r)
	})
	s.send(ctx, &due[0])
	s.note(t.Context())
	s.sends.Wait()
	w.becomes(id, "1 delivered 1 200")
}
