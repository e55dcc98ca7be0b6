package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestWrongSettings(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(secret, []byte("pk_test_1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	keys := map[string]string{"STRIPE_BRIDGE_QUOTAD_URL": "http://127.0.0.1:1", "STRIPE_BRIDGE_QUOTAD_KEY": "k", "STRIPE_BRIDGE_STRIPE_KEY": "sk_live_1"}
	for _, c := range []struct {
		args string
		env  map[string]string
		says string
	}{
		{"run", nil, "--quotad-url"},
		{"run --quotad-url=ftp://x", keys, "--quotad-url: must be a URL"},
		{"run --quotad-url=http://u:p@x", keys, "--quotad-url: must be a URL"},
		{"run --stripe-url=x", keys, "--stripe-url: must be a URL"},
		{"run --quotad-url=http://x", nil, "--quotad-key: is missing"},
		{"run --quotad-url=http://x --quotad-key=k", nil, "--stripe-key: is missing"},
		{
			"run",
			map[string]string{"STRIPE_BRIDGE_QUOTAD_URL": "http://x", "STRIPE_BRIDGE_QUOTAD_KEY": "k", "STRIPE_BRIDGE_STRIPE_KEY_FILE": secret},
			"--stripe-key: is no secret or restricted key",
		},
		{"run", map[string]string{"STRIPE_BRIDGE_STRIPE_KEY": "a", "STRIPE_BRIDGE_STRIPE_KEY_FILE": secret}, "are both set"},
		{"run", map[string]string{"STRIPE_BRIDGE_STRIPE_KEY_FILE": secret + "x"}, "no such file"},
		{"run --test-real-customers", keys, "--test-real-customers: needs a key of Stripe's test mode"},
		{"run --listen=:0", keys, "--webhook-secret: is missing"},
		{"run --workers=0", keys, "--workers: must be between"},
		{"run --poll=1ms", keys, "--poll: must be between"},
		{"run --stripe-poll=25h", keys, "--stripe-poll: must be between"},
		{"run --sweep=1s", keys, "--sweep: must be between"},
		{"run --collection=cash", keys, "--collection"},
		{"run --start=never", keys, "--start"},
		{"walk", nil, "walk"},
	} {
		var out, errs strings.Builder
		p := program{stdout: &out, stderr: &errs, lookupEnv: func(name string) (string, bool) { v, ok := c.env[name]; return v, ok }}
		if code := p.main(context.Background(), strings.Fields(c.args)); code != exitUsage || !strings.Contains(errs.String(), c.says) {
			t.Errorf("%s: code %d, %s", c.args, code, errs.String())
		}
		if strings.Contains(errs.String(), "pk_test_1") {
			t.Errorf("%s prints a key: %s", c.args, errs.String())
		}
	}
}

func TestStatusAndDismiss(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.json")
	s, _, err := openStore(path)
	if err != nil {
		t.Fatal(err)
	}
	s.change(func(st *state) {
		st.Mode = modeTest
		st.tell(notice{ID: "payment abc", Invoice: "abc", Text: "money came twice"})
		st.ask("def", time.Now())
		st.Work["def"].Tries, st.Work["def"].Error = 3, "Stripe answered 400"
	})
	if err := s.save(); err != nil {
		t.Fatal(err)
	}
	run := func(want int, args ...string) string {
		t.Helper()
		var out strings.Builder
		p := program{stdout: &out, stderr: &out, lookupEnv: func(string) (string, bool) { return "", false }}
		if code := p.main(context.Background(), args); code != want {
			t.Errorf("%v: code %d\n%s", args, code, &out)
		}
		return out.String()
	}
	if got := run(0, "status", "--state="+path); !strings.Contains(got, `"payment abc"`) || !strings.Contains(got, "3 tries") {
		t.Errorf("status prints\n%s", got)
	}
	run(exitFailed, "dismiss", "--state="+path, "payment abc") // it is held
	s.close()
	run(exitFailed, "dismiss", "--state="+path, "payment xyz")
	run(0, "dismiss", "--state="+path, "payment abc")
	if got := run(0, "status", "--state="+path); strings.Contains(got, "payment abc") {
		t.Errorf("the notice is still there\n%s", got)
	}
	run(exitFailed, "dismiss", "--state="+path+"x", "payment abc")
	if got := run(0); !strings.Contains(got, "Usage:") {
		t.Errorf("without a command it prints\n%s", got)
	}
	run(0, "version")
}
