package webhooks

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	standard "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"quotad/internal/events"
	"quotad/internal/plans"
	"quotad/internal/quota/model"
	"quotad/internal/testkit"
	"quotad/internal/testkit/planstest"
)

// Each webhook gets the events of its types from its making on, signed, as the API shows them. Both
// secrets sign after a rotation.
func TestDelivered(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.happens(events.PlanPublished, 1)
	some, every := receive(t, nil), receive(t, nil)
	one, secret := w.creates(some.URL+"/hook?x=1", events.InvoicePaid, events.PlanPublished)
	other, _ := w.creates(every.URL)
	w.runs(w.sender())
	w.happens(events.PlanPublished, 1)
	w.happens(events.InvoiceVoid, 1)
	w.becomes(one, "2 delivered 1 200")
	w.becomes(other, "2 delivered 1 200, 3 delivered 1 200")
	hook, next, err := w.hooks.Rotate(t.Context(), one)
	if err != nil || hook.OldUntil == nil || next == secret {
		t.Fatal(hook, err)
	}
	w.happens(events.InvoicePaid, 1)
	w.becomes(one, "2 delivered 1 200, 4 delivered 1 200")
	if some.ids() != "2 4" || every.ids() != "2 3 4" {
		t.Errorf("received %s and %s", some.ids(), every.ids())
	}
	shown, err := events.Read(t.Context(), w.pool, events.Filter{After: 1, Type: events.PlanPublished}, 1)
	if err != nil {
		t.Fatal(err)
	}
	got := some.all()
	if want := fmt.Sprintf(`{"id":2,"type":"plan.published","at":"2023-11-14T22:13:20Z","customer":null,"test_clock":null,"data":%s}`,
		strings.ReplaceAll(string(shown[0].Data), ": ", ":")); strings.ReplaceAll(got[0].body, ", ", ",") != strings.ReplaceAll(want, ", ", ",") {
		t.Errorf("received %s, want %s", got[0].body, want)
	}
	signed := func(r received, by string) bool {
		verifier, err := standard.NewWebhook(by)
		if err != nil {
			t.Fatal(err)
		}
		return verifier.Verify([]byte(r.body), r.header) == nil
	}
	for i, want := range []string{"true false", "true true"} {
		if is := fmt.Sprint(signed(got[i], secret), signed(got[i], next)); is != want {
			t.Errorf("the %d. is signed by the old and the new secret: %s, want %s", i+1, is, want)
		}
		altered := got[i]
		altered.body = strings.Replace(altered.body, "pro", "max", 1)
		if signed(altered, secret) {
			t.Error("another body is signed, too")
		}
	}
	w.exec(`UPDATE webhooks SET old_until = clock_timestamp()`)
	w.happens(events.InvoicePaid, 1)
	w.becomes(one, "2 delivered 1 200, 4 delivered 1 200, 5 delivered 1 200")
	if last := some.all()[2]; signed(last, secret) || !signed(last, next) {
		t.Error("the old secret signs after its time, or the new one does not")
	}
}

// The library of another language takes what is sent, by the secret as it is shown, and refuses it when
// anything of it is another.
func TestSignedForOtherLanguages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	to := receive(t, nil)
	id, secret := w.creates(to.URL)
	w.runs(w.sender())
	w.happens(events.PlanPublished, 1)
	w.becomes(id, "1 delivered 1 200")
	got := to.all()[0]
	if _, secret, err := w.hooks.Rotate(t.Context(), id); err != nil || secret == "" {
		t.Fatal(err)
	}
	w.happens(events.PlanPublished, 1)
	w.becomes(id, "1 delivered 1 200, 2 delivered 1 200")
	verified := func(r received, change string) string {
		t.Helper()
		headers := map[string]string{}
		for _, name := range []string{"webhook-id", "webhook-timestamp", "webhook-signature"} {
			headers[name] = r.header.Get(name)
		}
		switch change {
		case "id":
			headers["webhook-id"] += "0"
		case "body":
			r.body += " "
		}
		in, err := json.Marshal(map[string]any{"secret": secret, "headers": headers, "body": r.body})
		if err != nil {
			t.Fatal(err)
		}
		node := exec.CommandContext(t.Context(), "node", "testdata/verify.cjs")
		node.Stdin = bytes.NewReader(in)
		out, err := node.CombinedOutput()
		if err != nil {
			t.Fatalf("node: %v\n%s", err, out)
		}
		return strings.TrimSpace(string(out))
	}
	if is := verified(got, ""); is != "plan.published" {
		t.Error(is)
	}
	if is := verified(to.all()[1], ""); is != "plan.published" { // two secrets sign
		t.Error(is)
	}
	for _, change := range []string{"id", "body"} {
		if is := verified(got, change); !strings.HasPrefix(is, "refused: No matching signature") {
			t.Errorf("with another %s: %s", change, is)
		}
	}
}

// Receivers that stall, fail, redirect, send a gigabyte, end connections or have no TLS harm no other:
// that one has all its events before a stalled attempt has ended. No redirect is followed.
func TestOneHarmsNoOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ends := make(chan struct{})
	defer close(ends)
	var sent atomic.Int64
	target := receive(t, nil)
	bad := map[string]func(http.ResponseWriter, *http.Request){
		"stalls": func(w http.ResponseWriter, r *http.Request) {
			select {
			case <-ends:
			case <-r.Context().Done():
			}
		},
		"stalls-in-the-body": func(w http.ResponseWriter, r *http.Request) {
			_, _ = w.Write([]byte("x"))
			_ = http.NewResponseController(w).Flush()
			select {
			case <-ends:
			case <-r.Context().Done():
			}
		},
		"fails": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) },
		"redirects": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, target.URL, http.StatusTemporaryRedirect)
		},
		"gigabyte": func(w http.ResponseWriter, _ *http.Request) {
			block := make([]byte, 1<<16)
			for range 1 << 14 {
				n, err := w.Write(block)
				if sent.Add(int64(n)); err != nil {
					return
				}
			}
		},
		"hangs-up": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	}
	ids := map[string]string{}
	for name, answer := range bad {
		ids[name], _ = w.creates(receive(t, answer).URL)
	}
	good := receive(t, nil)
	ids["good"], _ = w.creates(good.URL)
	w.happens(events.PlanPublished, 3*perWebhook)
	w.runs(w.sender())
	testkit.Eventually(t, "the good one to have all", func() bool { return len(good.all()) == 3*perWebhook })
	for _, name := range []string{"stalls", "stalls-in-the-body"} { // they hold up none, though none of theirs has ended
		if ended := w.says(`SELECT count(last_at)::text FROM deliveries WHERE webhook = $1`, ids[name]); ended != "0" {
			t.Errorf("%s: %s attempts have ended", name, ended)
		}
	}
	const first = `SELECT coalesce(max(status::text), '-') || ' ' || coalesce(max(error), '-') FROM deliveries WHERE webhook = $1 AND last_at IS NOT NULL`
	for name, want := range map[string]string{"fails": "500 the answer is 500", "redirects": "307 the answer is 307: redirects are not followed"} {
		testkit.Eventually(t, name, func() bool { return w.says(first, ids[name]) == want })
	}
	testkit.Eventually(t, "the one that hangs up", func() bool { return strings.Contains(w.says(first, ids["hangs-up"]), "EOF") })
	if len(target.all()) > 0 {
		t.Error("a redirect was followed")
	}
	testkit.Eventually(t, "the gigabytes to end", func() bool { return strings.HasPrefix(w.says(first, ids["gigabyte"]), "200") })
	if n := sent.Load(); n > 3*perWebhook*(8<<20) {
		t.Errorf("%d bytes were read", n)
	}
}

// A name may lead to another address than when the webhook was made: it is the address that is dialled
// that counts.
func TestAddressesAreCheckedWhenDialled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.hooks = patient(New(w.pool, false))
	inside := receive(t, nil)
	id, _ := w.creates("https://localhost" + inside.URL[strings.LastIndexByte(inside.URL, ':'):]) // no address by its name
	w.happens(events.PlanPublished, 1)
	w.runs(w.sender())
	testkit.Eventually(t, "the refusal", func() bool {
		return strings.Contains(w.says(`SELECT coalesce(error, '') FROM deliveries WHERE webhook = $1`, id), "is private")
	})
	if len(inside.all()) > 0 {
		t.Error("it was dialled")
	}
	for address, want := range map[string]string{ // plainly: not at all, with the setting
		"8.8.8.8": "ok ok", "2606:4700::1111": "ok ok", "127.0.0.1": "private ok", "::1": "private ok", "::ffff:127.0.0.1": "private ok", "10.1.2.3": "private ok",
		"172.31.255.255": "private ok", "172.32.0.1": "ok ok", "192.168.0.1": "private ok", "fd12::1": "private ok", "100.64.0.1": "private ok",
		"169.254.169.254": "none none", "::ffff:169.254.169.254": "none none", "fe80::1": "none none", "fe80::1%eth0": "none none", "0.0.0.0": "none none",
		"::":              "none none",
		"100.100.100.200": "none none", "fd00:ec2::254": "none none", "224.0.0.1": "none none", "ff02::1": "none none", "255.255.255.255": "none none",
		"64:ff9b::a00:1": "private ok", "64:ff9b::a9fe:a9fe": "none none", "64:ff9b::808:808": "ok ok", "2002:7f00:1::": "private ok",
		"2001:0:1::1": "none none", "192.0.0.192": "none none",
		"64:ff9b:1::808:808": "none none", "64:ff9b:1:a00:0:100::": "none none", "::ffff:0:808:808": "none none", "::ffff:0:a00:1": "none none",
		"2606:4700::5efe:a00:1": "none none", "2606:4700::200:5efe:808:808": "none none", "fd12::5efe:808:808": "none none",
		"3fff::1": "none none", "3fff:fff:ffff::1": "none none", "3fff:1000::1": "ok ok", "5f00::1": "none none",
		"2001:2::1": "private ok", "198.18.0.1": "private ok", "198.19.255.255": "private ok", "2001:2:1::1": "none none", "2001:10::1": "none none", "2001:20::1": "none none",
		"2001:2f:ffff::1": "none none", "100::1": "none none", "100:0:0:1::1": "none none", "4000::1": "none none", "1::1": "none none", "e000::1": "none none",
		"::808:808": "none none", "2001:1::1": "ok ok", "2001:1::4": "none none", "2001:200::1": "ok ok", "2001:4:112::1": "ok ok", "2620:4f:8000::1": "ok ok", "192.31.196.1": "ok ok", "192.175.48.1": "ok ok",
	} {
		var is []string
		for _, privately := range []bool{false, true} {
			switch err := allowed(netip.MustParseAddr(address), false, privately); {
			case err == nil:
				is = append(is, "ok")
			case strings.Contains(err.Error(), "is private"):
				is = append(is, "private")
			default:
				is = append(is, "none")
			}
		}
		if got := strings.Join(is, " "); got != want {
			t.Errorf("%s: %s, want %s", address, got, want)
		}
	}
	for want, err := range map[string]error{
		"no such host": &net.DNSError{Err: "no such host", Name: "example.com", Server: "10.9.8.7:53", IsNotFound: true},
		"in time":      &net.DNSError{Err: "read udp 10.9.8.6:999->10.9.8.7:53: i/o timeout", Name: "example.com", Server: "10.9.8.7:53", IsTimeout: true},
		"cannot be looked up": &url.Error{Op: "Post", URL: "https://example.com/secret", Err: &net.OpError{
			Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "dial udp 10.9.8.7:53: connect: refused", Name: "example.com", Server: "10.9.8.7:53"},
		}},
	} {
		if got := failure(err); !strings.Contains(got, want) || !strings.Contains(got, `"example.com"`) || strings.Contains(got, "10.9") {
			t.Errorf("%v is kept as %q", err, got)
		}
	}
	if allowed(netip.MustParseAddr("8.8.8.8"), true, true) == nil || allowed(netip.MustParseAddr("10.0.0.1"), true, true) == nil {
		t.Error("others than this machine are dialled without TLS")
	}
}

// What cannot be a webhook is told.
func TestWrongWebhooks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	public := patient(New(w.pool, false))
	for _, to := range []string{
		"", "x", "http://example.com", "ftp://example.com", "https://", "https:///x", "https:example.com", "https://u:p@example.com",
		"https://example.com/#x", "https://example.com#",
		"https://example.com:0", "https://example.com:65536", "https://example.com:99999999999999999999",
		"https://127.0.0.1", "https://[::1]:8443/x", "https://169.254.169.254/latest", "https://[::ffff:10.0.0.1]/", "http://localhost:80",
		"https://example.com/\x00", "https://example.com/" + strings.Repeat("x", 2000),
	} {
		if _, _, err := public.Create(t.Context(), to, nil); !slices.Equal(planstest.Fields(err), []string{"url"}) {
			t.Errorf("%q: %v", to, err)
		}
	}
	for _, to := range []string{"http://10.0.0.1", "http://example.com", "https://169.254.169.254"} {
		if _, _, err := w.hooks.Create(t.Context(), to, nil); !slices.Equal(planstest.Fields(err), []string{"url"}) {
			t.Errorf("with private ones %q: %v", to, err)
		}
	}
	if _, _, err := public.Create(t.Context(), "https://example.com", []string{
		"x", events.InvoicePaid,
		events.InvoicePaid,
	}); !slices.Equal(planstest.Fields(err), []string{"types", "types"}) {
		t.Error(err)
	}
	for range maxWebhooks {
		if _, _, err := public.Create(t.Context(), "https://example.com", nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := public.Create(t.Context(), "https://example.com", nil); !errors.Is(err, ErrTooMany) {
		t.Error(err)
	}
	for _, err := range []error{
		public.Delete(t.Context(), "wh_none"), second(public.Replay(t.Context(), "wh_none", 0, 1)),
		second(public.Deliveries(t.Context(), "wh_none", plans.Page{})), second(w.sender().Test(t.Context(), "wh_none")),
	} {
		if !errors.Is(err, ErrUnknown) {
			t.Error(err)
		}
	}
	if _, err := public.Deliveries(t.Context(), "wh_none", plans.Page{Limit: -1}); !errors.As(err, new(model.FieldErrors)) {
		t.Error(err)
	}
}

func second[T any](_ T, err error) error { return err }
