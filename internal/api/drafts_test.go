package api

import (
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"quotad/internal/api/drafts"
	"quotad/internal/quota/model"
	"quotad/internal/testkit"
)

const draftOfPro = `{"name":"P","currency":"USD","interval":"month","base_price_minor":2500,
	"limits":[{"name":"hourly","meter":"requests","algorithm":"fixed_window","limit":100,"window":"1h"}],
	"prices":[{"meter":"requests","model":"per_unit","unit_price":"0.02"}]}`

// A draft is stored as it was typed, with what is wrong told and not refused.
func TestDraftsAreStored(t *testing.T) {
	t.Parallel()
	n := billedNode(t)
	const path = "/v1/plans/pro/draft"
	n.want(404, "GET", path, "")
	n.want(404, "DELETE", path, "")
	first := n.want(201, "PUT", path,
		`{ "name":"P","currency":"USD","interval":"year","limits":[{"name":"x","meter":"nothing","algorithm":"fixed_window","window":"1h"}]}`)
	if first.json["based_on"] != 1.0 || first.json["latest_version"] != 1.0 {
		t.Errorf("based on %v of %v", first.json["based_on"], first.json["latest_version"])
	}
	for _, field := range []string{"interval", "limits[0].meter", "limits[0].limit"} {
		if !strings.Contains(first.text, `"field":"`+field+`"`) {
			t.Errorf("%s is not among the problems: %s", field, first.text)
		}
	}
	if !strings.Contains(first.text, `"plan":{ "name":"P"`) && !strings.Contains(first.text, `"plan":{"name":"P"`) {
		t.Errorf("it is not there as it was typed: %s", first.text)
	}
	n.want(428, "PUT", path, draftOfPro)
	n.want(412, "PUT", path, draftOfPro, "If-Match", `"7"`)
	second := n.want(200, "PUT", path, draftOfPro, "If-Match", first.header.Get("ETag"))
	if got := n.want(200, "GET", path, ""); got.text != second.text || len(got.json["problems"].([]any)) != 0 {
		t.Errorf("%s\nis not %s", got.text, second.text)
	}
	for body, status := range map[string]int{
		`{`: 400, `[]`: 422, `{"name":1}`: 422, `{"colour":"red"}`: 422, `{"name":null}`: 422,
		`{"limits":[{"limit":"many"}]}`: 422,
	} {
		n.want(status, "PUT", path, body, "If-Match", second.header.Get("ETag"))
	}
	if got := n.want(200, "GET", path, ""); got.text != second.text {
		t.Errorf("a refused draft was stored: %s", got.text)
	}
	n.want(204, "DELETE", path, "")
	n.want(404, "GET", path, "")
	if got := n.want(201, "PUT", "/v1/plans/new/draft", draftOfPro); got.json["based_on"] != 0.0 {
		t.Errorf("the draft of no plan is based on %v", got.json["based_on"])
	}
}

// Somebody publishes while another one drafts: the draft says so, publishing it is refused, and
// it can be put onto the new version.
func TestDraftsFollowWhatIsPublished(t *testing.T) {
	t.Parallel()
	n := billedNode(t)
	const path = "/v1/plans/pro/draft"
	drafted := n.want(201, "PUT", path, draftOfPro)
	other := strings.Replace(draftOfPro, "2500", "2600", 1)
	n.want(201, "PUT", "/v1/plans/pro", other, "If-Match", `"1"`)
	if got := n.want(200, "GET", path, ""); got.json["based_on"] != 1.0 || got.json["latest_version"] != 2.0 {
		t.Errorf("%s", got.text)
	}
	n.want(412, "PUT", "/v1/plans/pro", draftOfPro, "If-Match", `"1"`)
	based := n.want(200, "PUT", path+"?rebase=true", draftOfPro, "If-Match", drafted.header.Get("ETag"))
	if based.json["based_on"] != 2.0 {
		t.Errorf("%s", based.text)
	}
	n.want(201, "PUT", "/v1/plans/pro", draftOfPro, "If-Match", `"2"`)
	n.want(422, "PUT", path+"?rebase=perhaps", draftOfPro)
}

// Of many that write a draft at once one makes it, and nobody overwrites unseen.
func TestDraftsAreWrittenOneAfterTheOther(t *testing.T) {
	t.Parallel()
	n := billedNode(t)
	var wait sync.WaitGroup
	statuses := make([]int, 8)
	for i := range statuses {
		wait.Go(func() {
			statuses[i] = n.do("PUT", "/v1/plans/pro/draft", draftOfPro).status
		})
	}
	wait.Wait()
	made := 0
	for _, status := range statuses {
		if status == 201 {
			made++
		} else if status != 428 {
			t.Errorf("status %d", status)
		}
	}
	if made != 1 {
		t.Errorf("%d made it: %v", made, statuses)
	}
}

func TestPlayDraft(t *testing.T) {
	t.Parallel()
	n := billedNode(t)
	const path = "/v1/plans/pro/draft/play"
	const edge = `{"meter":"requests","traffic":{"pattern":"edge","window":"1h","windows":3,"steady":12,"burst":90}}`
	n.want(404, "POST", path, edge)
	n.want(201, "PUT", "/v1/plans/pro/draft", draftOfPro)
	before := n.charged()
	got := n.want(200, "POST", path, edge)
	draft, force := got.json["draft"].(map[string]any), got.json["in_force"].(map[string]any)
	if sum := draft["admitted"].(map[string]any)["hits"].(float64) + draft["refused"].(map[string]any)["hits"].(float64); sum != 36+90+90+60 {
		t.Errorf("%v hits", sum)
	}
	limit := draft["limits"].([]any)[0].(map[string]any)
	if draft["refused"].(map[string]any)["hits"].(float64) == 0 || limit["fullest"].(map[string]any)["units"].(float64) < 150 ||
		len(limit["level"].([]any)) != 240 {
		t.Errorf("%v", limit)
	}
	if says := draft["refusal"].(string); !strings.Contains(says, "Limit hourly is used up.") || !strings.Contains(says, "send it again in") {
		t.Errorf("a refusal says %q", says)
	}
	if force["refused"].(map[string]any)["hits"] != 0.0 || force["refusal"] != nil {
		t.Errorf("in force: %v", force["refused"])
	}
	own := n.want(200, "POST", path, `{"meter":"requests","traffic":{"pattern":"own","window":"1h","windows":1,"hits":[{"at_us":5,"cost":101},{"at_us":1}]}}`)
	hits := own.json["draft"].(map[string]any)["hits"].([]any)
	if first, second := hits[0].(map[string]any), hits[1].(map[string]any); first["admitted"] != true || second["admitted"] != false ||
		second["retry_after_ms"] != nil {
		t.Errorf("%v", hits)
	}
	for _, wrong := range []string{
		`{"traffic":{"pattern":"steady","window":"1m"}}`, `{"meter":"requests"}`,
		`{"meter":"requests","traffic":{"pattern":"tide","window":"1m"}}`, `{"meter":"requests","traffic":{"pattern":"steady","window":"soon"}}`,
		`{"meter":"requests","traffic":{"pattern":"steady","window":"1m","windows":61}}`,
		`{"meter":"requests","traffic":{"pattern":"steady","window":"1m","steady":-1}}`,
		`{"meter":"requests","traffic":{"pattern":"steady","window":"1m","windows":60,"steady":10000}}`,
		`{"meter":"requests","traffic":{"pattern":"own","window":"1m","hits":[{"at_us":-1}]}}`,
		`{"meter":"requests","traffic":{"pattern":"own","window":"1m","hits":[{"at_us":1,"cost":99999999999999999}]}}`,
	} {
		n.want(422, "POST", path, wrong)
	}
	if after := n.charged(); after != before {
		t.Errorf("a play wrote: %s, before %s", after, before)
	}
	n.want(200, "PUT", "/v1/plans/pro/draft", strings.Replace(draftOfPro, `"limit":100`, `"limit":-1`, 1), "If-Match", "*")
	n.want(422, "POST", path, edge)
}

// charged is what is stored of all counters and usage.
func (n *node) charged() (all string) {
	n.t.Helper()
	check(n.t, n.store.Pool().QueryRow(testkit.Context(n.t),
		`SELECT concat((SELECT string_agg(c::text, ',') FROM counters c), (SELECT string_agg(u::text, ',') FROM usage u))`).Scan(&all))
	return all
}

// used writes hours of a customer's usage, as if they had been.
func (n *node) used(customer string, hours [][3]int64) {
	n.t.Helper()
	c, err := n.store.GetCustomer(testkit.Context(n.t), customer)
	check(n.t, err)
	m, err := n.store.GetMeter(testkit.Context(n.t), "requests")
	check(n.t, err)
	var total int64
	for _, h := range hours {
		_, err = n.store.Pool().Exec(testkit.Context(n.t), `INSERT INTO usage (shard, customer, meter, hour, admitted, denied) VALUES ($1,$2,$3,$4,$5,$6)`,
			model.Shard(c.ID), c.ID, m.ID, h[0], h[1], h[2])
		check(n.t, err)
		total += h[1]
	}
	_, err = n.store.Pool().Exec(testkit.Context(n.t), `INSERT INTO counters (shard, customer, meter, total) VALUES ($1,$2,$3,$4)`, model.Shard(c.ID),
		c.ID, m.ID, total)
	check(n.t, err)
}

// The hours of the past through a draft: what it refuses and bills, one customer and the fullest.
func TestCompareDraft(t *testing.T) {
	t.Parallel()
	n := billedNode(t)
	const path = "/v1/plans/pro/draft/compare"
	n.want(404, "POST", path, `{}`)
	n.want(201, "PUT", "/v1/plans/pro/draft", draftOfPro)
	for _, key := range []string{"small", "large", "pinned", "idle"} {
		body := `{"name":"C","plan":"pro","billing_anchor":"2026-01-01T00:00:00"}`
		if key == "pinned" {
			body = `{"name":"C","plan":"pro","plan_version":1}`
		}
		n.want(201, "PUT", "/v1/customers/"+key, body)
	}
	hour := time.Now().UTC().Truncate(time.Hour).Add(-5 * time.Hour).UnixMicro()
	n.used("small", [][3]int64{{hour, 90, 0}, {hour + 3600e6, 100, 50}})
	n.used("large", [][3]int64{{hour, 400, 0}, {hour + 3600e6, 10, 0}, {hour - 40*86400e6, 5000, 0}})
	n.used("pinned", [][3]int64{{hour, 9000, 0}})
	before := n.charged()
	one := n.want(200, "POST", path, `{"customer":"small"}`)
	if one.json["asked"] != 240.0 || one.json["recorded_refused"] != 50.0 || one.json["customers"] != 1.0 {
		t.Errorf("%s", one.text)
	}
	refused := func(side any) any { return side.(map[string]any)["refused"].(map[string]any)["least"] }
	if got := refused(one.json["draft"]); got != 50.0 || refused(one.json["in_force"]) != 0.0 {
		t.Errorf("refused %v beside %v", got, refused(one.json["in_force"]))
	}
	all := n.want(200, "POST", path, `{}`)
	if all.json["customers"] != 2.0 || all.json["asked"] != 650.0 || refused(all.json["draft"]) != 350.0 || all.json["others"] != true {
		t.Errorf("%s", all.text)
	}
	cell := all.json["limits"].([]any)[0].(map[string]any)
	if cell["in_force"] != nil || cell["draft"].(map[string]any)["how"] != "by_hour" {
		t.Errorf("%v", cell)
	}
	// Usage alone differs by 2 cents against 1, on what each admits.
	draft, force := all.json["draft"].(map[string]any)["billed_minor"].(map[string]any), all.json["in_force"].(map[string]any)["billed_minor"].(map[string]any)
	bases := draft["least"].(float64) - 2*300
	if ratio := bases / (force["least"].(float64) - 650); math.Abs(ratio-1.25) > 0.01 {
		t.Errorf("billed %v beside %v: the bases are as %f", draft, force, ratio)
	}
	n.want(422, "POST", path, `{"customer":"nobody"}`)
	n.want(422, "POST", path, `{"customer":""," x":1}`)
	if after := n.charged(); after != before {
		t.Error("a comparison wrote")
	}
	n.want(200, "PUT", "/v1/plans/pro/draft", `{"name":"P"}`, "If-Match", "*")
	n.want(422, "POST", path, `{}`)
}

// A comparison of as many customers as there may be ends in time.
func TestCompareDraftHasBounds(t *testing.T) {
	t.Parallel()
	n := billedNode(t)
	n.want(201, "PUT", "/v1/plans/pro/draft", draftOfPro)
	ctx := testkit.Context(t)
	hour := time.Now().UTC().Truncate(time.Hour).UnixMicro()
	_, err := n.store.Pool().Exec(ctx, `INSERT INTO customers (key, name, plan_id, joined_version, timezone, billing_anchor, change)
		SELECT 'c' || i, 'C', (SELECT id FROM plans WHERE key = 'pro'), 1, 'UTC', '2026-01-01T00:00:00', 1 FROM generate_series(1, 1200) i`)
	check(t, err)
	rows, err := n.store.Pool().Query(ctx, `SELECT id FROM customers`)
	check(t, err)
	ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	check(t, err)
	shards := make([]int16, len(ids))
	for i, id := range ids {
		shards[i] = model.Shard(id)
	}
	_, err = n.store.Pool().Exec(ctx, `INSERT INTO usage (shard, customer, meter, hour, admitted)
		SELECT s, c, 1, $3 - h * 3600000000::bigint, 150 FROM unnest($1::smallint[], $2::bigint[]) AS i(s, c), generate_series(1, 300) h`, shards, ids, hour)
	check(t, err)
	_, err = n.store.Pool().Exec(ctx,
		`INSERT INTO counters (shard, customer, meter, total) SELECT s, c, 1, c FROM unnest($1::smallint[], $2::bigint[]) AS i(s, c)`, shards, ids)
	check(t, err)
	n.server.Deadline = 15 * time.Second
	got := n.want(200, "POST", "/v1/plans/pro/draft/compare", `{}`)
	if got.json["chosen"] != 1000.0 || got.json["others"] != true {
		t.Errorf("%s", got.text[:min(len(got.text), 500)])
	}
	done := got.json["customers"].(float64)
	if got.json["asked"] != done*300*150 || done == 0 {
		t.Errorf("%v customers, %v units", done, got.json["asked"])
	}
	t.Logf("%v of 1000 customers in time", done)
}

// More plays at once than a node works on wait, and are then told to come again.
func TestPlaysTakePlaces(t *testing.T) {
	t.Parallel()
	n := billedNode(t)
	n.want(201, "PUT", "/v1/plans/pro/draft", draftOfPro)
	if free := freeOf(n.server.drafts.Heavy); free != drafts.MaxHeavy {
		t.Fatalf("%d places are free", free)
	}
	takeAll(n.server.drafts.Heavy)
	n.server.Deadline = time.Second
	play := `{"meter":"requests","traffic":{"pattern":"steady","window":"1m"}}`
	if got := n.want(503, "POST", "/v1/plans/pro/draft/play", play); got.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	n.want(503, "POST", "/v1/plans/pro/draft/compare", `{}`)
	n.server.Deadline = testkit.Patience
	answered := make(chan int)
	go func() { answered <- n.do("POST", "/v1/plans/pro/draft/play", play).status }()
	testkit.Eventually(t, "the play waits", func() bool { return n.server.drafts.Heavy.Waiting() == 1 })
	n.server.drafts.Heavy.GiveBack()
	if got := <-answered; got != 200 {
		t.Errorf("the play that waited: %d", got)
	}
	if n.want(200, "POST", "/v1/plans/pro/draft/compare", `{}`); freeOf(n.server.drafts.Heavy) != 1 {
		t.Error("it has not given its place back")
	}
}
