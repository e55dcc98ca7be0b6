package api

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"
)

// yearLevels are meters that count what is held.
var yearLevels = []string{"seats", "racks"}

// hold takes, gives up, sets or imports what is held of a level meter.
func (c *guest) hold() {
	y := c.group.year
	meter, cost, id := one(y, yearLevels...), y.between(1, 30), y.id()
	now := c.Level(meter, c.Clock.Now)
	body := map[string]any{"customer": c.Key, "meter": meter, "cost": cost, "id": id}
	switch y.dice.IntN(6) {
	case 0, 1:
		if got := y.try("POST", "/v1/hits", body); got.status == 429 {
			y.done("level refused")
			return
		} else if got.status == 403 && c.Refuses() != "" {
			return
		} else if got.status != 200 {
			c.fail("hit %v: %d %s", body, got.status, got.text)
		}
		c.Hold(meter, now+cost)
		c.held = append(c.held, yearHit{id, meter, cost})
		y.done("level taken")
	case 2:
		left := cost
		if n := len(c.held); n > 0 && y.chance(2) {
			h := &c.held[y.dice.IntN(n)]
			meter, now = h.meter, c.Level(h.meter, c.Clock.Now)
			left = min(cost, h.cost)
			body["meter"], body["hit"] = h.meter, h.id
			h.cost -= min(left, now)
		}
		units := min(left, now)
		var done struct{ Refunded int64 }
		check(y.t, json.Unmarshal([]byte(y.call(200, "POST", "/v1/refunds", body).text), &done))
		if done.Refunded != units {
			c.fail("refund %v gave %d back, want %d", body, done.Refunded, units)
		}
		if units > 0 {
			c.Hold(meter, now-units)
		}
		y.done("level given up")
	case 3:
		line := map[string]any{"id": id, "customer": c.Key, "meter": meter, "level": cost}
		if got := y.call(200, "POST", "/v1/imports", line).text; !strings.Contains(got, `"imported":1`) {
			y.t.Fatalf("%v: %s", line, got)
		}
		c.Hold(meter, cost)
		y.done("level imported")
	default:
		got := y.try("PUT", c.path+"/levels/"+meter, map[string]any{"level": cost})
		switch {
		case got.status == 200:
			c.Hold(meter, cost)
		case cost <= now || got.status != 429 && (got.status != 403 || c.Refuses() == ""):
			c.fail("level %s of %d, held %d: %d %s", meter, cost, now, got.status, got.text)
		}
		y.done("level set")
	}
	c.did("%s: %d of %s are held, %v", meter, c.Level(meter, c.Clock.Now), meter, body)
}

// levels holds what the node says of all that was held against the oracle, hour by hour or day by day.
func (c *guest) levels() {
	y := c.group.year
	for _, meter := range yearLevels {
		from, step := c.Clock.Now-one(y, 40*yearDay, 300*yearDay), "day"
		if y.chance(2) {
			from, step = c.Clock.Now-6*yearDay, "hour"
		}
		var got struct {
			Points []struct {
				Start      time.Time
				Last, Peak int64
				Average    string
			}
		}
		c.group.read(c.path+"/usage?"+url.Values{"meter": {meter}, "granularity": {step}, "from": {stamp(from)}}.Encode(), &got)
		for i := range max(0, len(got.Points)-1) { // the last one is not over
			p, a, b := got.Points[i], got.Points[i].Start.UnixMicro(), got.Points[i+1].Start.UnixMicro()
			want := fmt.Sprint(c.Last(meter, b), c.Peak(meter, a, b), c.Average(meter, a, b).FloatString(6))
			if said := fmt.Sprint(p.Last, p.Peak, p.Average); said != want {
				c.fail("usage of %s from %s to %s is %s, want %s", meter, stamp(a), stamp(b), said, want)
			}
		}
	}
	y.done("levels looked at")
}
