package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
)

// The program itself: it is killed in the middle of its work, goes on, and stops when it is told to.
func TestBinary(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"a", "b", "c"} {
		w.prepare(name, bill{base: 1000})
	}
	ids := []string{w.await("a"), w.await("b"), w.await("c")}
	program, state := build(t, "quotad-stripe", "."), filepath.Join(t.TempDir(), "state.json")
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte(adminKey+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out pgtest.Log
	start := func() (*exec.Cmd, chan error) {
		t.Helper()
		cmd := exec.Command(program, "run", "--start=all", "--test-real-customers", "--poll=100ms", "--stripe-poll=100ms", "--log-level=debug", "--state="+state)
		cmd.Env = append(os.Environ(), "STRIPE_BRIDGE_QUOTAD_URL="+w.quotad.BaseURL, "STRIPE_BRIDGE_STRIPE_URL="+w.url,
			"STRIPE_BRIDGE_QUOTAD_KEY_FILE="+secret, "STRIPE_BRIDGE_STRIPE_KEY=sk_test_secret9")
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		t.Cleanup(func() { _ = cmd.Process.Kill() })
		return cmd, ended
	}
	for calls := range 8 { // each is killed a call later than the one before
		killAt := w.stripe.asked() + calls + 1
		cmd, ended := start()
		testkit.Eventually(t, "the bridge calls Stripe", func() bool {
			select {
			case err := <-ended:
				t.Fatalf("it ended by itself: %v\n%s", err, out.String())
			default:
			}
			return w.stripe.asked() >= killAt
		})
		if err := cmd.Process.Kill(); err != nil {
			t.Fatalf("it ended by itself: %v\n%s", err, out.String())
		}
		if err := <-ended; err == nil {
			t.Fatal("it ended in peace, although it was killed")
		}
	}
	cmd, ended := start()
	open := func() (n int) {
		for _, id := range ids {
			if found := w.stripe.of(id); len(found) == 1 && found[0]["status"] == "open" {
				n++
			}
		}
		return n
	}
	testkit.Eventually(t, "all are at Stripe", func() bool { return open() == len(ids) })
	for _, id := range ids {
		w.same(id)
		w.stripe.collect(t, id)
	}
	testkit.Eventually(t, "all are paid", func() bool {
		for _, id := range ids {
			if q := w.read(id); q.Status != statusPaid || len(q.Payments) != 1 {
				return false
			}
		}
		return true
	})
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("it ended with %v\n%s", err, out.String())
		}
	case <-time.After(testkit.Patience):
		t.Fatalf("it does not stop\n%s", out.String())
	}
	for _, words := range []string{"sk_test_secret9", adminKey, "Buyer of"} {
		if raw, err := os.ReadFile(state); err != nil || strings.Contains(out.String()+string(raw), words) {
			t.Errorf("%q is in the log or in the state file (%v)", words, err)
		}
	}
	if !strings.Contains(out.String(), "the bridge stops") {
		t.Errorf("it does not say that it stops\n%s", out.String())
	}
}
