package api

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"quotad/internal/api/imports"
	"quotad/internal/testkit"
)

// imported sends lines and returns the answer, which must have these counts.
func (n *node) imported(body string, done, replayed, failed int) reply {
	n.t.Helper()
	got := n.want(200, "POST", "/v1/imports", body, "Content-Type", "application/x-ndjson")
	n.counts(got, done, replayed, failed)
	if got.json["stopped"] != nil {
		n.t.Errorf("stopped: %s", got.text)
	}
	return got
}

// counts fails unless an import's answer has these counts, and an error for each failed line.
func (n *node) counts(got reply, done, replayed, failed int) {
	n.t.Helper()
	list := got.json["errors"].([]any)
	want := fmt.Sprint([]int{done + replayed + failed, done, replayed, failed, failed})
	if have := fmt.Sprint([]any{got.json["lines"], got.json["imported"], got.json["replayed"], got.json["failed"], len(list)}); have != want {
		n.t.Errorf("lines, imported, replayed, failed and errors are %s, want %s: %.2000s", have, want, got.text)
	}
	last := 0.0
	for _, e := range list {
		if line := e.(map[string]any)["line"].(float64); line <= last {
			n.t.Errorf("line %v comes behind line %v", line, last)
		} else {
			last = line
		}
	}
}

// usageLine is a line of usage of acme's requests.
func usageLine(id string, cost int, at string) string {
	return fmt.Sprintf(`{"id":%q,"customer":"acme","meter":"requests","cost":%d,"at":%q}`, id, cost, at)
}

func balanceLine(id, customer, limit string, used int) string {
	return fmt.Sprintf(`{"id":%q,"customer":%q,"meter":"requests","limit":%q,"used":%d}`, id, customer, limit, used)
}

// A customer moves here on the 20th: what was used this month, by the hour, and what
// counts against the bucket. The month goes on where it was.
func TestMoveInMidPeriod(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUp(`{"name":"month","meter":"requests","algorithm":"fixed_window","limit":1000,"window":"calendar_month"},
		{"name":"bucket","meter":"requests","algorithm":"token_bucket","limit":24,"window":"1d","burst":100}`)
	n.want(201, "PUT", "/v1/test-clocks/c", `{"now":"2026-03-20T15:30:00Z"}`)
	for _, customer := range []string{"acme-2", "initech"} {
		n.want(201, "PUT", "/v1/customers/"+customer, `{"name":"x","plan":"pro","timezone":"UTC","billing_anchor":"2026-03-01T00:00:00","test_clock":"c"}`)
	}
	// Its billing begins with the month, and not when it was made.
	n.want(200, "PUT", "/v1/customers/acme-2/billing", `{"starts_at":"2026-03-01T00:00:00Z","buyer":{"name":"Acme","address":[],"country":"DE"},"taxes":[]}`)
	var lines strings.Builder
	start := time.Date(2026, 2, 27, 0, 0, 0, 0, time.UTC) // two days of the month before
	total, hours := 0, 0
	for ; hours < 516; hours++ { // to the 20th, 11:00
		at := start.Add(time.Duration(hours) * time.Hour)
		if at.Month() == time.March {
			total += 2
		}
		lines.WriteString(strings.Replace(usageLine(fmt.Sprint("h", hours), 2, at.Format(time.RFC3339)), "acme", "acme-2", 1) + "\n")
	}
	lines.WriteString(balanceLine("b", "acme-2", "bucket", 60) + "\n")
	lines.WriteString(balanceLine("m", "initech", "month", 1000) + "\n")
	n.imported(lines.String(), hours+2, 0, 0)

	n.standing("acme-2", float64(total), 0)
	n.booked("acme-2", float64(total))
	got := n.want(200, "GET", "/v1/customers/acme-2/usage?meter=requests&granularity=month&from=2026-02-01T00:00:00Z", "")
	if want := fmt.Sprintf(`[{"start":"2026-02-01T00:00:00Z","admitted":96,"denied":0},{"start":"2026-03-01T00:00:00Z","admitted":%d,"denied":0}]`,
		total); !strings.Contains(got.text, want) {
		t.Errorf("usage %s, want %s", got.text, want)
	}
	const hit = `{"customer":"acme-2","meter":"requests","cost":%d}`
	if got := n.want(429, "POST", "/v1/hits", fmt.Sprintf(hit, 41)); fmt.Sprint(got.json["violated-policies"]) != "[bucket]" ||
		got.left() != fmt.Sprintf("month %d, bucket 40", 1000-total) {
		t.Errorf("more than the bucket has: %s", got.text)
	}
	n.want(200, "POST", "/v1/hits", fmt.Sprintf(hit, 40))
	n.want(200, "PUT", "/v1/test-clocks/c", `{"now":"2026-03-22T15:30:00Z"}`)
	n.want(200, "POST", "/v1/hits", fmt.Sprintf(hit, 1000-total-40))
	if got := n.want(429, "POST", "/v1/hits", fmt.Sprintf(hit, 1)); fmt.Sprint(got.json["violated-policies"]) != "[month]" ||
		got.limits()["month"]["reset_at"] != "2026-04-01T00:00:00Z" {
		t.Errorf("the month is full: %s", got.text)
	}
	n.booked("acme-2", 1000)
	// A balance alone counts and is no usage.
	if got := n.want(429, "POST", "/v1/hits", `{"customer":"initech","meter":"requests"}`); fmt.Sprint(got.json["violated-policies"]) != "[month]" {
		t.Errorf("a full month: %s", got.text)
	}
	n.booked("initech", 0)
	n.want(200, "PUT", "/v1/test-clocks/c", `{"now":"2026-04-01T00:00:00Z"}`)
	n.want(200, "POST", "/v1/hits", `{"customer":"initech","meter":"requests"}`)
}

// Sent again, as often as it takes, each line is done once; another one under its id is not.
func TestImportsAgain(t *testing.T) {
	t.Parallel()
	a := newNode(t)
	b := newNodeOn(t, a.database)
	a.setUp(`{"name":"seats","meter":"requests","algorithm":"allocation","limit":1000}`)
	first := usageLine("1", 5, "2026-01-31T12:00:00Z") + "\n" + usageLine("2", 7, "2026-01-31T12:00:00Z") + "\n"
	a.imported(first, 2, 0, 0)
	a.imported(first, 0, 2, 0)
	b.imported(first+usageLine("3", 1, "2026-01-31T13:00:00Z"), 1, 2, 0)
	// The same instant written in another way is the same line; twice in one import, too.
	again := usageLine("4", 1, "2026-01-31T13:00:00+01:00") + "\n" + usageLine("4", 1, "2026-01-31t12:00:00.000z")
	b.imported(again, 1, 1, 0)
	a.standing("acme", 14, 0)
	a.imported(balanceLine("5", "acme", "seats", 3), 1, 0, 0)
	a.imported(first+again+"\n"+balanceLine("5", "acme", "seats", 3), 0, 5, 0)
	a.standing("acme", 3, 0)
	others := []string{
		usageLine("1", 6, "2026-01-31T12:00:00Z"), usageLine("1", 5, "2026-01-31T12:00:01Z"), balanceLine("1", "acme", "seats", 5),
		strings.Replace(usageLine("1", 5, "2026-01-31T12:00:00Z"), `,"cost"`, `,"attributes":{"ip":"x"},"cost"`, 1),
		balanceLine("5", "acme", "seats", 4), balanceLine("5", "acme", "chairs", 3),
	}
	got := a.imported(strings.Join(others, "\n"), 0, 0, len(others))
	for _, e := range got.json["errors"].([]any) {
		if e := e.(map[string]any); e["status"] != 422.0 || e["type"] != "/problems/id-reused" || e["field"] != "id" {
			t.Errorf("another line: %v", e)
		}
	}
	a.standing("acme", 3, 0)
	// An import's id is none of a hit's.
	if got := a.want(200, "POST", "/v1/hits", `{"customer":"acme","meter":"requests","id":"1"}`); got.json["replayed"] != false {
		t.Errorf("a hit: %s", got.text)
	}
}

// What is less than what counted lets in at once, on every node.
func TestBalancesComeBack(t *testing.T) {
	t.Parallel()
	a := newNode(t)
	b := newNodeOn(t, a.database)
	a.setUp(`{"name":"year","meter":"requests","algorithm":"fixed_window","limit":3,"window":"365d"}`)
	a.want(200, "POST", "/v1/hits", `{"customer":"acme","meter":"requests","cost":3}`)
	for range 3 {
		b.want(429, "POST", "/v1/hits", `{"customer":"acme","meter":"requests"}`)
	}
	a.imported(balanceLine("1", "acme", "year", 2), 1, 0, 0)
	testkit.Eventually(t, "the other node", func() bool { return b.do("POST", "/v1/hits", `{"customer":"acme","meter":"requests"}`).status == 200 })
	a.standing("acme", 3, 0)
	a.booked("acme", 4)
}

// Limits that another node has judged by again are found again.
func TestImportsByStaleLimits(t *testing.T) {
	t.Parallel()
	a := newNode(t)
	b := newNodeOn(t, a.database)
	a.setUp(hourly)
	for i := range 10 {
		b.want(200, "POST", "/v1/hits", `{"customer":"acme","meter":"requests","cost":0}`) // b remembers its limits
		a.want([]int{201, 200}[min(i, 1)], "PUT", "/v1/customers/acme/overrides/hourly", fmt.Sprintf(`{"limit":%d}`, 100+i))
		a.want(200, "POST", "/v1/hits", `{"customer":"acme","meter":"requests"}`)
		b.imported(balanceLine(fmt.Sprint(i), "acme", "hourly", i)+"\n"+balanceLine(fmt.Sprint(i, "+"), "acme", "hourly", 50+i), 2, 0, 0)
		a.standing("acme", float64(50+i), 0)
	}
}

// Each wrong line is told by its number, and the others are done.
func TestBadImports(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUp(hourly + `,{"name":"bucket","meter":"requests","algorithm":"token_bucket","limit":10,"window":"1d","burst":9},
		{"name":"flight","meter":"requests","algorithm":"concurrency","limit":2,"ttl":"1m"}`)
	n.want(201, "PUT", "/v1/meters/other", `{"unit":"x"}`)
	const past = `"at":"2026-01-31T12:00:00Z"`
	line := func(rest string) string { return `{"id":"x","customer":"acme","meter":"requests"` + rest + `}` }
	var body strings.Builder
	var want []string
	bad := [][2]string{
		{`{`, "400 not-json "},
		{`7`, "422 invalid "},
		{`null`, "422 invalid "},
		{`[]`, "422 invalid "},
		{`x`, "400 not-json "},
		{"{\"id\":\"\xff\"}", "400 not-json "},
		{`{}{}`, "400 not-json "},
		{`{}`, "422 invalid customer"},
		{line(``), "422 invalid "},
		{line(`,"cost":1`), "422 invalid at"},
		{line(`,` + past), "422 invalid cost"},
		{line(`,"limit":"hourly"`), "422 invalid used"},
		{line(`,"used":1`), "422 invalid limit"},
		{line(`,"cost":1,` + past + `,"limit":"hourly","used":1`), "422 invalid "},
		{line(`,"cost":1,"used":1`), "422 invalid "},
		{line(`,"cost":0,` + past), "422 invalid cost"},
		{line(`,"cost":-1,` + past), "422 invalid cost"},
		{line(`,"cost":1.5,` + past), "422 invalid cost"},
		{line(`,"cost":1000000000000000,` + past), "422 invalid cost"},
		{line(`,"cost":null,` + past), "422 invalid cost"},
		{line(`,"cost":"1",` + past), "422 invalid cost"},
		{line(`,"cost":1,"at":"yesterday"`), "422 invalid at"},
		{line(`,"cost":1,"at":1769860800`), "422 invalid at"},
		{line(`,"cost":1,"at":"2026-01-31"`), "422 invalid at"},
		{line(`,"cost":1,"at":"1969-12-31T23:59:59Z"`), "422 invalid at"},
		{line(`,"cost":1,"at":"2999-01-01T00:00:00Z"`), "422 invalid at"},
		{line(`,"limit":"hourly","used":-1`), "422 invalid used"},
		{line(`,"limit":"hourly","used":1000000000000000`), "422 invalid used"},
		{line(`,"limit":"a b","used":1`), "422 invalid limit"},
		{line(`,"limit":"","used":1`), "422 invalid limit"},
		{line(`,"limit":"none","used":1`), "404 not-found limit"},
		{line(`,"limit":"flight","used":1`), "404 not-found limit"},
		{line(`,"limit":"bucket","used":10`), "422 invalid used"},
		{line(`,"cost":1,` + past + `,"dry_run":true`), "422 invalid dry_run"},
		{line(`,"cost":1,"cost":1,` + past), "422 invalid cost"},
		{line(`,"cost":1,` + past + `,"attributes":{"a b":"x"}`), "422 invalid attributes.a b"},
		{line(`,"cost":1,` + past + `,"attributes":{"a":1}`), "422 invalid attributes.a"},
		{`{"customer":"acme","meter":"requests","cost":1,` + past + `}`, "422 invalid id"},
		{`{"id":"a\nb","customer":"acme","meter":"requests","cost":1,` + past + `}`, "422 invalid id"},
		{`{"id":"x","customer":"nobody","meter":"requests","cost":1,` + past + `}`, "404 not-found customer"},
		{`{"id":"x","customer":"acme","meter":"none","cost":1,` + past + `}`, "404 not-found meter"},
		{`{"id":"x","customer":"acme","meter":"other","cost":1,` + past + `}`, "403 not-in-plan meter"},
		{`{"id":"x","customer":"acme","meter":"requests","pad":"` + strings.Repeat("x", imports.MaxLine) + `"}`, "413 too-large "},
		{strings.Repeat("x", 3*imports.MaxLine), "413 too-large "},
	}
	number := 0
	for i, c := range bad {
		fmt.Fprintf(&body, "%s\r\n\r\n%s\n", usageLine(fmt.Sprint("good", i), 1, "2026-01-31T12:00:00Z"), c[0])
		number += 3
		want = append(want, fmt.Sprint(number, " ", c[1]))
	}
	got := n.imported(body.String(), len(bad), 0, len(bad))
	for i, e := range got.json["errors"].([]any) {
		e := e.(map[string]any)
		id, field := any(nil), e["field"]
		if line := bad[i][0]; strings.HasPrefix(line, `{"id":"x"`) && len(line) <= imports.MaxLine {
			id = "x"
		}
		if field == nil {
			field = ""
		}
		have := fmt.Sprint(e["line"], " ", e["status"], " ", strings.TrimPrefix(e["type"].(string), "/problems/"), " ", field)
		if have != want[i] || e["detail"] == "" || e["id"] != id {
			t.Errorf("%.200s: %s, want %s: %v", bad[i][0], have, want[i], e)
		}
	}
	n.booked("acme", 0) // January is over
	got = n.want(200, "GET", "/v1/customers/acme/usage?meter=requests&granularity=month&from=2026-01-01T00:00:00Z&to=2026-02-01T00:00:00Z", "")
	if !strings.Contains(got.text, fmt.Sprintf(`"admitted":%d,`, len(bad))) {
		t.Errorf("usage: %s", got.text)
	}
	n.want(404, "GET", "/v1/customers/nobody", "")
}

// A meter that the plan only names takes usage, and attributes have their buckets.
func TestImportsByAttribute(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.want(201, "PUT", "/v1/meters/requests", `{"unit":"request"}`)
	n.want(201, "PUT", "/v1/meters/named", `{"unit":"x"}`)
	n.want(201, "PUT", "/v1/plans/pro", `{"name":"Pro","currency":"USD","interval":"month","base_price_minor":0,"meters":["named"],"prices":[],
		"limits":[{"name":"by-ip","meter":"requests","algorithm":"allocation","limit":9,"per":"ip"}]}`)
	n.want(201, "PUT", "/v1/customers/acme", `{"name":"Acme","plan":"pro","timezone":"UTC"}`)
	usage := usageLine("1", 4, "2026-01-31T12:00:00Z")
	ip := strings.Replace(balanceLine("2", "acme", "by-ip", 7), `,"limit"`, `,"attributes":{"ip":"192.0.2.1"},"limit"`, 1)
	n.imported(strings.Replace(usage, "requests", "named", 1)+"\n"+strings.Replace(usage, `"1"`, `"3"`, 1)+"\n"+ip, 3, 0, 0)
	for query, used := range map[string]float64{"?attr.ip=192.0.2.1": 7, "?attr.ip=192.0.2.2": 0, "": 4} {
		if got := n.want(200, "GET", "/v1/customers/acme/quota"+query, ""); got.limits()["by-ip"]["used"] != used {
			t.Errorf("%q: %s, want %v", query, got.text, used)
		}
	}
	got := n.want(200, "GET", "/v1/customers/acme/usage?meter=named&granularity=month&from=2026-01-01T00:00:00Z&to=2026-02-01T00:00:00Z", "")
	if !strings.Contains(got.text, `"admitted":4,`) {
		t.Errorf("usage: %s", got.text)
	}
}

func TestBodiesOfImports(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUp(hourly)
	one := func(id string) string { return usageLine(id, 1, "2026-01-31T12:00:00Z") }
	for body, done := range map[string]int{
		"": 0, "\n": 0, " \r\n\t\n": 0, one("1"): 1, one("2") + "\r\n": 1, "\r\n" + one("3") + "\r\n" + one("4"): 2, one("5") + "\n\n \n" + one("6") + " \n": 2,
	} {
		n.imported(body, done, 0, 0)
	}
	longest := one("7") + strings.Repeat(" ", imports.MaxLine-len(one("7")))
	n.imported(longest+"\r\n"+longest+" \n"+longest, 1, 1, 1)
	for media, status := range map[string]int{
		"application/x-ndjson": 200, "application/jsonl": 200, "application/json": 200, "application/x-ndjson; charset=UTF-8": 200, "Application/JSONL": 200,
		"application/x-ndjson; charset=latin1": 415, "application/ndjson": 415, "text/plain": 415, "-": 415,
	} {
		if got := n.want(status, "POST", "/v1/imports", one("8"), "Content-Type", media); status == 415 && got.json["type"] != "/problems/unsupported-media-type" {
			t.Errorf("%s: %s", media, got.text)
		}
	}
	n.want(415, "POST", "/v1/imports", "x", "Content-Type", "application/x-ndjson", "Content-Encoding", "gzip")
	n.want(403, "POST", "/v1/imports", one("9"), "Authorization", n.key("backend"))
	n.want(422, "POST", "/v1/imports?dry_run=true", one("9"))
	for _, want := range []string{
		`{operation="import",outcome="done"} 8`, `{operation="import",outcome="replayed"} 5`,
		`{operation="import",outcome="failed"} 1`,
	} {
		if got := n.want(200, "GET", "/metrics", ""); !strings.Contains(got.text, "quotad_operations_total"+want) {
			t.Errorf("no %s", want)
		}
	}
}
