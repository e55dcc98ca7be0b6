package api

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"quotad/internal/testkit"
)

// raised waits until all that was reached is shown, and returns the customer's thresholds as words: name or
// meter, percent, used and of how many.
func (n *node) raised(customer string) (all []string) {
	n.t.Helper()
	testkit.Eventually(n.t, "thresholds to be shown", func() bool {
		var waiting int
		check(n.t, n.store.Pool().QueryRow(n.t.Context(), `SELECT (SELECT count(*) FROM outbox) + (SELECT count(*) FROM thresholds)`).Scan(&waiting))
		return waiting == 0
	})
	for _, e := range n.want(200, "GET", "/v1/events?limit=1000&customer="+customer, "").items() {
		data := e["data"].(map[string]any)
		switch e["type"] {
		case "limit.threshold":
			all = append(all, fmt.Sprint(data["name"], " ", data["percent"], " ", data["used"], "/", data["limit"]))
		case "cap.threshold":
			all = append(all, fmt.Sprint("cap ", data["percent"], " ", data["used"], "/", data["units"]))
		}
	}
	return all
}

func (n *node) wantRaised(customer string, want ...string) {
	n.t.Helper()
	if got := n.raised(customer); !slices.Equal(got, want) {
		n.t.Errorf("%s was told\n%s\nand not\n%s", customer, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

const notifying = `{"name":"monthly","meter":"requests","algorithm":"fixed_window","limit":100,"window":"calendar_month","notify":[80,50,100]}`

// hitOf sends a hit and returns its status.
func (n *node) hitOf(customer string, cost int) int {
	n.t.Helper()
	return n.do("POST", "/v1/hits", fmt.Sprintf(`{"customer":%q,"meter":"requests","cost":%d}`, customer, cost)).status
}

// A charge raises what it reaches, once in a window, whatever way it takes.
func TestThresholdsOfAWindow(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUp(notifying)
	n.hitOf("acme", 49)
	n.wantRaised("acme")
	n.hitOf("acme", 1)
	n.wantRaised("acme", "monthly 50 50/100")
	for range 3 {
		n.hitOf("acme", 1)
	}
	n.want(200, "POST", "/v1/refunds", `{"customer":"acme","meter":"requests","cost":53,"id":"r"}`)
	n.hitOf("acme", 60) // 50 was raised in this window
	n.wantRaised("acme", "monthly 50 50/100")
	n.want(200, "POST", "/v1/hits", `{"customer":"acme","meter":"requests","cost":40,"id":"h"}`)
	n.want(200, "POST", "/v1/hits", `{"customer":"acme","meter":"requests","cost":40,"id":"h"}`)
	n.wantRaised("acme", "monthly 50 50/100", "monthly 80 100/100", "monthly 100 100/100")
	events := n.want(200, "GET", "/v1/events?type=limit.threshold", "").items()
	data := events[1]["data"].(map[string]any)
	if data["meter"] != "requests" || data["window_start"] == nil || data["reset_at"] == nil || data["burst"] != nil || events[1]["customer"] != "acme" {
		t.Errorf("the event is %v", events[1])
	}
	n.want(201, "PUT", "/v1/customers/other", `{"name":"O","plan":"pro"}`)
	n.hitOf("other", 70)
	for range 2 {
		if n.hitOf("other", 31) != 429 {
			t.Fatal("70 and 31 of 100")
		}
	}
	n.wantRaised("other", "monthly 50 70/100", "monthly 100 70/100")
	n.hitOf("other", 30)
	n.wantRaised("other", "monthly 50 70/100", "monthly 100 70/100", "monthly 80 100/100")
}

// What is wrong with thresholds is told by its field, and what is right is stored as it was written.
func TestNotifyIsChecked(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUp(notifying)
	limit := func(more string) string {
		return `{"name":"P","currency":"USD","interval":"month","base_price_minor":0,"limits":[{"name":"l","meter":"requests","limit":10,` + more + `}]}`
	}
	tried := 0
	for more, want := range map[string]string{
		`"algorithm":"fixed_window","window":"1h","notify":[1,2,3,4,5]`:          "201 ",
		`"algorithm":"fixed_window","window":"59m","notify":[80]`:                "422 limits[0].notify",
		`"algorithm":"fixed_window","window":"1h","notify":[1,2,3,4,5,6]`:        "422 limits[0].notify",
		`"algorithm":"fixed_window","window":"1h","notify":[80,80]`:              "422 limits[0].notify",
		`"algorithm":"fixed_window","window":"1h","notify":[0]`:                  "422 limits[0].notify",
		`"algorithm":"fixed_window","window":"1h","notify":[101]`:                "422 limits[0].notify",
		`"algorithm":"fixed_window","window":"1h","notify":[80],"mode":"shadow"`: "422 limits[0].notify",
		`"algorithm":"fixed_window","window":"1h","notify":[80],"mode":"soft"`:   "201 ",
		`"algorithm":"fixed_window","window":"1h","notify":[80],"per":"ip"`:      "422 limits[0].notify",
		`"algorithm":"fixed_window","window":"1h","notify":[]`:                   "201 ",
		`"algorithm":"fixed_window","window":"billing_period","notify":[80]`:     "201 ",
		`"algorithm":"sliding_window","window":"1h","notify":[80]`:               "201 ",
		`"algorithm":"sliding_log","window":"30m","notify":[80]`:                 "422 limits[0].notify",
		`"algorithm":"token_bucket","window":"1m","notify":[80]`:                 "422 limits[0].notify",
		`"algorithm":"token_bucket","window":"1m","burst":600,"notify":[80]`:     "201 ",
		`"algorithm":"token_bucket","window":"1d","burst":1,"notify":[80]`:       "201 ",
		`"algorithm":"allocation","notify":[80]`:                                 "201 ",
		`"algorithm":"concurrency","ttl":"1h","notify":[80]`:                     "422 limits[0].notify",
	} {
		tried++
		if got := n.faultOf("PUT", fmt.Sprint("/v1/plans/p", tried), limit(more)); got != want {
			t.Errorf("%s: %s, want %s", more, got, want)
		}
	}
	stored := n.want(200, "GET", "/v1/plans/pro", "").json["limits"].([]any)[0].(map[string]any)
	if got := fmt.Sprint(stored["notify"]); got != "[80 50 100]" {
		t.Errorf("stored is %s", got)
	}
	for _, notify := range []string{`[80.5]`, `"80"`, `["80"]`, `80`, `[null]`} {
		if got := n.do("PUT", "/v1/plans/odd", limit(`"algorithm":"allocation","notify":`+notify)); got.status != 422 && got.status != 400 {
			t.Errorf("notify %s: %d %s", notify, got.status, got.text)
		}
	}
}

// asked waits until all changes were asked about.
func (n *node) asked() {
	n.t.Helper()
	for range 2 { // the first time may end before the newest change is old enough
		testkit.Eventually(n.t, "edits to be asked about", func() bool {
			var done bool
			check(n.t, n.store.Pool().QueryRow(n.t.Context(),
				`SELECT t.number = n.number AND leased_until < clock_timestamp() FROM threshold_changes t, change_number n`).Scan(&done))
			return done
		})
	}
}

// An edit raises what it leaves above, and arms again what it puts above use, also when nobody sends a hit.
func TestThresholdsOfEdits(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUp(notifying)
	n.want(201, "PUT", "/v1/customers/idle", `{"name":"I","plan":"pro"}`)
	n.hitOf("acme", 45)
	override := func(limit int, more string) {
		t.Helper()
		if got := n.do("PUT", "/v1/customers/acme/overrides/monthly", fmt.Sprintf(`{"limit":%d%s}`, limit, more)); got.status > 201 {
			t.Fatal(got.text)
		}
		n.asked()
	}
	n.asked()
	n.wantRaised("acme")
	override(90, "")
	want := []string{"monthly 50 45/90"}
	n.wantRaised("acme", want...)
	override(50, "")
	want = append(want, "monthly 80 45/50")
	n.wantRaised("acme", want...)
	override(56, "") // 80 percent are 44.8
	n.wantRaised("acme", want...)
	override(57, "") // 45.6: armed again
	n.wantRaised("acme", want...)
	override(56, "")
	want = append(want, "monthly 80 45/56")
	n.wantRaised("acme", want...)
	n.want(204, "DELETE", "/v1/customers/acme/overrides/monthly", "")
	n.asked()
	n.hitOf("acme", 5)
	want = append(want, "monthly 50 50/100")
	n.wantRaised("acme", want...)
	ends := n.nowOf().Add(time.Hour)
	override(50, `,"expires_at":"`+ends.UTC().Format(time.RFC3339Nano)+`"`)
	want = append(want, "monthly 80 50/50", "monthly 100 50/50")
	n.wantRaised("acme", want...)
	n.leap(ends.Add(inexact))
	testkit.Eventually(t, "the override to end", func() bool {
		return n.do("GET", "/v1/customers/acme/overrides/monthly", "").status == 404 || len(n.want(200, "GET", "/v1/customers/acme/overrides", "").items()) == 0
	})
	n.asked()
	n.wantRaised("acme", want...)
	tag := n.want(200, "GET", "/v1/plans/pro", "").header.Get("ETag")
	n.want(201, "PUT", "/v1/plans/pro", `{"name":"Pro","currency":"USD","interval":"month","base_price_minor":2000,"limits":[`+strings.Replace(notifying,
		"100,", "60,", 1)+`]}`, "If-Match", tag)
	n.asked()
	want = append(want, "monthly 80 50/60")
	n.wantRaised("acme", want...)
	n.wantRaised("idle")
}

// A version of a plan tells of all its customers what it leaves reached, once, though each node follows it.
func TestThresholdsOfAPlanOfMany(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	newNodeOn(t, n.database)
	n.setUp(notifying)
	const many = 230 // more than two pages
	for i := range many {
		n.want(201, "PUT", fmt.Sprint("/v1/customers/c", i), `{"name":"C","plan":"pro"}`)
		if n.hitOf(fmt.Sprint("c", i), 45) != 200 {
			t.Fatal(i)
		}
	}
	tag := n.want(200, "GET", "/v1/plans/pro", "").header.Get("ETag")
	n.want(201, "PUT", "/v1/plans/pro", `{"name":"Pro","currency":"USD","interval":"month","base_price_minor":2000,"limits":[`+strings.Replace(notifying,
		"100,", "50,", 1)+`]}`, "If-Match", tag)
	testkit.Eventually(t, "edits to be asked about", func() bool { // each page has a pause
		n.asked()
		return len(n.want(200, "GET", "/v1/events?limit=1000&type=limit.threshold", "").items()) >= 2*many
	})
	n.raised("c0")
	told := map[any]int{}
	for _, e := range n.want(200, "GET", "/v1/events?limit=1000&type=limit.threshold", "").items() {
		told[fmt.Sprint(e["customer"], " ", e["data"].(map[string]any)["percent"])]++
	}
	for i := range many {
		for _, percent := range []int{50, 80} {
			if got := told[fmt.Sprint("c", i, " ", percent)]; got != 1 {
				t.Errorf("c%d was told %d times of %d percent", i, got, percent)
			}
		}
	}
}
