package main

import (
	"strings"
	"testing"

	"quotad/internal/testkit/pgtest"
)

// What begins as a setting and is none is told at the start, with what was probably meant.
func TestUnknownSettings(t *testing.T) {
	env := map[string]string{
		"QUOTAD_DATABSE_URL": "x", "QUOTAD_ADMINKEY_FILE": "x", "QUOTAD_PORT": "9000", "QUOTAD_NOTHING_LIKE_IT": "x",
		"QUOTAD_LISTEN": "127.0.0.1:0", "QUOTAD_ADMIN_KEY_FILE": "", "QUOTAD_EMPTY": "", "QUOTA": "x",
		"QUOTAD_SERVICE_HOST": "10.0.0.1", "QUOTAD_PORT_8080_TCP": "tcp://10.0.0.1:8080",
	}
	var out, log pgtest.Log
	p := program{stdout: &out, stderr: &log, lookupEnv: func(name string) (string, bool) { value, ok := env[name]; return value, ok }}
	p.environ = func() (all []string) {
		for name, value := range env {
			all = append(all, name+"="+value)
		}
		return all
	}
	if code := p.main(t.Context(), []string{"serve", "--data-dir=/proc/nothing"}); code != exitFailed {
		t.Fatalf("code %d", code)
	}
	for _, says := range []string{
		"QUOTAD_DATABSE_URL is no setting of quotad's: did you mean QUOTAD_DATABASE_URL?",
		"QUOTAD_ADMINKEY_FILE is no setting of quotad's: did you mean QUOTAD_ADMIN_KEY_FILE?",
		"QUOTAD_PORT is no setting of quotad's. See `quotad serve --help`", "QUOTAD_NOTHING_LIKE_IT is no setting",
	} {
		if strings.Count(log.String(), says) != 1 {
			t.Errorf("not once in the log: %s\n%s", says, log.String())
		}
	}
	if n := strings.Count(log.String(), "level=WARN"); n != 4 {
		t.Errorf("%d warnings:\n%s", n, log.String())
	}
	env["QUOTAD_PORT"] = "tcp://10.0.0.1:8080"
	if code := p.main(t.Context(), []string{"keys", "list", "--database-url=postgres://quotad@" + freePort(t) + "/quotad"}); code != exitFailed {
		t.Fatalf("code %d", code)
	}
	if n := strings.Count(log.String(), "level=WARN"); n != 7 {
		t.Errorf("%d warnings:\n%s", n, log.String())
	}
}
