package main

import (
	"encoding/csv"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"quotad/internal/testkit"
)

// The usage page says what the usage endpoint says, drawn, as a table and as a file.
func TestUsagePageIsTheUsage(t *testing.T) {
	t.Parallel()
	n := start(t, "", "--close-delay=1h")
	awayFromHoursEnd(t)
	n.northwind()
	testkit.Eventually(t, "refused units are counted", func() bool {
		return strings.Contains(n.browser().enter(n, "acme").get("/portal/usage?meter=requests").text, "Refused <b>5,000</b>")
	})
	b := n.browser().enter(n, "acme")
	from := time.Now().UTC().Truncate(time.Hour).Add(-47 * time.Hour)
	points := n.do("GET", "/v1/customers/acme/usage?meter=requests&granularity=hour&from="+from.Format(time.RFC3339), "").is(200).at("points").([]any)
	var sum int64
	for _, p := range points {
		sum += whole(t, fmt.Sprint(p.(map[string]any)["admitted"]))
	}
	page := b.get("/portal/usage?meter=requests&range=48h").is(200).says("Admitted <b>"+grouped(int(sum))+"</b>", "Limit <b>5,000</b>", "<svg class=\"plot\"")
	if rows := strings.Count(page.text, "<tr><th scope=\"row\">"); rows != len(points) {
		t.Errorf("%d rows of %d points", rows, len(points))
	}
	file := b.get("/portal/usage.csv?meter=requests&range=48h").is(200)
	rows, err := csv.NewReader(strings.NewReader(file.text)).ReadAll()
	if err != nil || len(rows) != len(points)+1 || !strings.Contains(file.header.Get("Content-Disposition"), `attachment; filename="usage-requests.csv"`) {
		t.Fatalf("%d rows, %v, %v", len(rows), err, file.header)
	}
	for i, p := range points {
		if want := fmt.Sprint(p.(map[string]any)["admitted"]); rows[i+1][1] != want {
			t.Errorf("%v, not %s", rows[i+1], want)
		}
	}
	// A limit that is longer than a bar has no line, and neither has a shadow.
	if a := b.get("/portal/usage?meter=requests&range=30d").is(200); strings.Contains(a.text, "limit-line") {
		t.Error("a line that is no bar's limit")
	}
}

// whole is a whole number as pages or JSON write it.
func whole(t testing.TB, text string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(strings.ReplaceAll(text, ",", ""), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// What cannot be shown is a 422 that names the field and keeps what was typed.
func TestWrongUsage(t *testing.T) {
	t.Parallel()
	n := start(t, "", "--close-delay=1h")
	n.northwind()
	b := n.browser().enter(n, "acme")
	for address, says := range map[string][]string{
		"meter=nothing":                                     {`id="w-meter"`, "no such meter"},
		"meter=%3Cscript%3E":                                {`id="w-meter"`},
		"range=3y":                                          {`id="w-range"`},
		"meter=requests&by=year":                            {`id="w-by"`},
		"meter=requests&from=tomorrow":                      {`id="w-from"`, `value="tomorrow"`},
		"meter=requests&from=2026-01-02&to=2026-01-01":      {`id="w-from"`, `value="2026-01-02"`, `value="2026-01-01"`},
		"meter=requests&from=9999-01-01&to=9999-01-02":      {`id="w-from"`},
		"meter=requests&from=1970-01-01&by=hour":            {`id="w-by"`, "10,000 points", `value="1970-01-01"`},
		"meter=requests&from=-1&to=99999999999999999999999": {`id="w-from"`, `id="w-to"`},
	} {
		b.get("/portal/usage?" + address).is(422).says(says...)
		b.get("/portal/usage.csv?" + address).is(422)
	}
	b.get("/portal?attr." + url.QueryEscape(strings.Repeat("x", 65)) + "=1").is(422)
	b.get("/portal?attr.ip=" + strings.Repeat("x", 201)).is(422)
	b.get("/portal?attr.ip=192.0.2.1").is(200).says(`value="192.0.2.1"`, "<strong>20</strong>")
	two := b.get("/portal?attr.ip=192.0.2.1&attr.user=%22ann").is(200).says(`<input type="hidden" name="attr.user" value="&#34;ann">`)
	if strings.Contains(two.text, `type="hidden" name="attr.ip"`) {
		t.Error("the form asks for its own attribute twice")
	}
}

// A refusal shows with its limit and its units, on the first page too, and bad questions are 422.
func TestRefusalsPage(t *testing.T) {
	t.Parallel()
	n := start(t, "", "--close-delay=1h")
	awayFromHoursEnd(t)
	n.northwind()
	n.do("GET", "/v1/customers/acme/refusals", "").is(200)
	b := n.browser().enter(n, "acme")
	testkit.Eventually(t, "the refusal is stored", func() bool {
		return strings.Contains(b.get("/portal/refusals").text, `<td class="n">5,000</td>`)
	})
	b.get("/portal/refusals?meter=requests").is(200).says("API requests", "hourly", "would")
	b.get("/portal").is(200).says("Recent refusals", `<td class="n">5,000</td>`)
	b.get("/portal/refusals?meter=tokens").is(200).says("Nothing was refused")
	for _, bad := range []string{"meter=nothing", "meter=%3Cscript%3E", "cursor=x"} {
		if a := b.get("/portal/refusals?" + bad).is(422); strings.Contains(a.text, "<script>") {
			t.Error("a script")
		}
	}
}
