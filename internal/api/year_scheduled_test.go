package api

import (
	"encoding/json"
	"fmt"
	"strings"

	"quotad/internal/testkit/oracle"
)

// schedule lets another plan count later, or takes such a change away.
func (c *guest) schedule() {
	y, path := c.group.year, c.path+"/scheduled-change"
	defer c.plans()
	if y.chance(5) {
		status := 404
		if c.DropScheduled() {
			status = 204
			c.did("scheduled change dropped")
			y.done("scheduled change dropped")
		}
		y.call(status, "DELETE", path, nil)
		return
	}
	plan, pin, when := one(y, y.plans[c.Currency]...), 0, one(y, "", "", "period_end", "base_end")
	if y.chance(3) {
		plan = c.Terms().Plan
	}
	body := map[string]any{"plan": plan}
	if y.chance(3) {
		pin = int(y.between(1, int64(y.world.Newest(plan).N)))
		body["plan_version"] = pin
	}
	if when != "" {
		body["when"] = when
	}
	status := 201
	if was, _ := c.Waits(); was != nil {
		status = 200
	}
	var f *foreseen
	may := c.Schedule(plan, pin, when)
	if when != "" {
		f = c.foresee(map[bool]int{true: 200, false: 409}[may], planBody(oracle.Terms{Plan: plan, Pin: pin}, when))
	}
	if !may {
		y.call(409, "PUT", path, body)
		return
	}
	got := c.group.try("PUT", path, body)
	if got.status != status {
		c.fail("schedule %v: %d %s", body, got.status, got.text)
	}
	c.did("scheduled %v: %s", body, got.text)
	y.done("scheduled change")
	if f != nil {
		if !strings.Contains(got.text, stamp(f.At.UnixMicro())) {
			c.fail("foreseen was %s", stamp(f.At.UnixMicro()))
		}
		c.foresaw(f)
	}
}

// plans holds what the customer and its quota say of its plan, and of one that waits, and the limits
// that count, against the oracle.
func (c *guest) plans() {
	type shown struct {
		Plan        string
		PlanVersion int `json:"plan_version"`
		At          string
	}
	plan, version := c.Plan()
	want, wantLimits := fmt.Sprint(plan, " ", version.N), map[string]int64{}
	if s, v := c.Waits(); s != nil {
		want += fmt.Sprint(", then ", s.Plan, " ", v, " ", stamp(s.At))
	}
	for _, l := range version.Limits {
		limit := l.(map[string]any)
		wantLimits[limit["name"].(string)] = limit["limit"].(int64)
	}
	for path, versions := range map[string]string{c.path: "effective", c.path + "/quota": ""} {
		var got struct {
			Plan      string
			Version   int    `json:"plan_version"`
			Effective int    `json:"effective_version"`
			Scheduled *shown `json:"scheduled_change"`
			Limits    []struct {
				Name, Meter string
				Limit       int64
			}
		}
		text := c.group.call(200, "GET", path, nil).text
		check(c.group.t, json.Unmarshal([]byte(text), &got))
		if versions != "" {
			got.Version = got.Effective
		}
		is := fmt.Sprint(got.Plan, " ", got.Version)
		if s := got.Scheduled; s != nil {
			is += fmt.Sprint(", then ", s.Plan, " ", s.PlanVersion, " ", s.At)
		}
		if is != want {
			c.fail("%s is on %s, want %s: %s", path, is, want, text)
		}
		if versions != "" {
			continue
		}
		limits, caps, wantCaps := map[string]int64{}, map[string]int64{}, map[string]int64{}
		for _, l := range got.Limits {
			if l.Name == "cap" {
				caps[l.Meter] = l.Limit
				continue
			}
			limits[l.Name] = l.Limit
		}
		for meter := range c.Caps() {
			if units, capped := c.CapUnits(meter); capped {
				wantCaps[meter] = units
			}
		}
		if fmt.Sprint(caps) != fmt.Sprint(wantCaps) {
			c.fail("caps are %v units, want %v of %v", caps, wantCaps, c.Caps())
		}
		if fmt.Sprint(limits) != fmt.Sprint(wantLimits) {
			c.fail("limits %v, want %v of %s", limits, wantLimits, want)
		}
	}
}
