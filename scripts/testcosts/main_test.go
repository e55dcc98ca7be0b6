package main

import (
	"strings"
	"testing"
)

const lines = `{"package":"internal/api","cpu_seconds":100,"loop_seconds":0.5}
{"package":"internal/api","servers":1,"databases":300,"sessions":7000}
{"package":"internal/api","cpu_seconds":3,"loop_seconds":0.5}
{"package":"internal/quota","cpu_seconds":20,"loop_seconds":0.5}
{"package":"internal/cache","cpu_seconds":1,"loop_seconds":0.5}
`

func TestRead(t *testing.T) {
	t.Parallel()
	run, err := read(strings.NewReader(lines))
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	run.print(&out)
	want := strings.Fields("internal/api 100.0 200.0 1 300 7000 internal/quota 20.0 40.0 0 0 0 internal/cache 1.0 2.0 0 0 0 all 121.0 242.0 1 300 7000")
	if got := strings.Fields(out.String())[6:]; strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("it printed %q, not %q", got, want)
	}
	for _, bad := range []string{"", "{}", "no JSON", `{"package":"a","cpu_seconds":"b"}`} {
		if _, err := read(strings.NewReader(bad)); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}

func TestCompare(t *testing.T) {
	t.Parallel()
	run, err := read(strings.NewReader(lines))
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		was   map[string]float64
		says  string
		fails bool
	}{
		"as recorded":         {was: map[string]float64{"internal/api": 200, "internal/quota": 40}},
		"14 % more":           {was: map[string]float64{"internal/api": 176, "internal/quota": 40}},
		"16 % more":           {was: map[string]float64{"internal/api": 172, "internal/quota": 40}, says: "WARNING test internal/api"},
		"39 % more":           {was: map[string]float64{"internal/api": 200, "internal/quota": 29}, says: "WARNING test internal/quota"},
		"41 % more":           {was: map[string]float64{"internal/api": 200, "internal/quota": 28}, says: "TOO DEAR test internal/quota", fails: true},
		"a new package":       {was: map[string]float64{"internal/api": 200}, says: "WARNING test internal/quota"},
		"a short one doubles": {was: map[string]float64{"internal/api": 200, "internal/quota": 40, "internal/cache": 1}},
		"nothing recorded":    {fails: true},
	} {
		var out strings.Builder
		err := run.compare(&out, "test", test.was)
		if (err != nil) != test.fails {
			t.Errorf("%s: the error is %v", name, err)
		}
		noted := strings.Contains(out.String(), "WARNING") || strings.Contains(out.String(), "TOO DEAR")
		if noted != (test.says != "") || !strings.Contains(out.String(), test.says) {
			t.Errorf("%s: it printed %q", name, out.String())
		}
	}
}
