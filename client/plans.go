package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// MeterRequest is the body of PUT /v1/meters/{key}.
type MeterRequest struct {
	Unit string `json:"unit" minLength:"1" maxLength:"200" doc:"What one unit is called, such as request."`
	Name string `json:"name,omitempty" maxLength:"200" doc:"A name for people."`
	Kind string `json:"kind,omitempty" enum:"flow,level" doc:"What the meter counts. It is fixed when the meter is made:\n- flow (default): what passes, such as requests.\n- level: what is held, such as seats."`
}

// Meter is a countable quantity with its unit.
type Meter struct {
	Key  string `json:"key" doc:"The meter's key."`
	Unit string `json:"unit" doc:"The name of one unit, such as request."`
	Name string `json:"name" doc:"A name for people. Empty if the meter has no name."`
	Kind string `json:"kind" enum:"flow,level" doc:"What the meter counts. A flow meter counts what passes, such as requests. A level meter counts what is held, such as seats."`
}

// Plan is one immutable version of a plan, including its defaults.
type Plan struct {
	PlanVersion
	PlanInput
}

// PlanVersion names a version of a plan.
type PlanVersion struct {
	Key       string    `json:"key" doc:"The plan's key."`
	Version   int       `json:"version" doc:"The number of the plan version, from 1."`
	CreatedAt time.Time `json:"created_at" doc:"The instant at which the version was written, RFC 3339 in UTC."`
}

// PlanInput is a plan as an admin writes it with PUT /v1/plans/{key}. Together with its defaults, a PlanInput is
// also the stored and shown plan. Stored plans are never rewritten. Therefore fields may be added, but a field
// must never be renamed or change its meaning.
type PlanInput struct {
	Name           string         `json:"name" minLength:"1" maxLength:"200" doc:"The plan's name, for people."`
	Currency       string         `json:"currency" pattern:"^[A-Z]{3}$" doc:"Currency code, ISO 4217. All versions of a plan have one currency."`
	Interval       string         `json:"interval" enum:"day,week,month,year" doc:"The billing period is interval_count of these intervals."`
	IntervalCount  int            `json:"interval_count" required:"false" minimum:"1" default:"1" doc:"The number of intervals in a billing period."`
	BasePriceMinor int64          `json:"base_price_minor" required:"false" minimum:"0" maximum:"999999999999999" default:"0" doc:"Price of a billing period, or of base_every of them, in minor units of the currency."`
	BaseIn         string         `json:"base_in" required:"false" enum:"arrears,advance" default:"arrears" doc:"When the base price is due:\n- arrears (default): after the billing period.\n- advance: before it."`
	BaseEvery      int            `json:"base_every,omitempty" required:"false" minimum:"1" maximum:"120" default:"1" doc:"How many billing periods the base price is for. Above 1 it must be due in advance. So a yearly base price goes with usage that is billed each month."`
	MinimumMinor   int64          `json:"minimum_minor" required:"false" minimum:"0" maximum:"999999999999999" default:"0" doc:"The least that the base and the usage of a billing period cost together, in minor units."`
	Meters         []string       `json:"meters" required:"false" doc:"Meters that are admitted and counted, beside those that limits and prices name."`
	Features       map[string]any `json:"features" required:"false" doc:"What the application may ask for. Values are booleans, numbers and strings. quotad does nothing with them."`
	Limits         []Limit        `json:"limits" required:"false" maxItems:"100" doc:"The limits, at most 100, and at most 20 on one meter."`
	Prices         []Price        `json:"prices" required:"false" doc:"The prices of the meters, at most one for each meter. A meter without a price is free."`
	ApplyTo        string         `json:"apply_to" required:"false" enum:"all,new" default:"all" doc:"Which customers a new version counts for:\n- all (default): customers of the plan who are not pinned to a version.\n- new: customers who join later."`
}

// Limit is one limit of a plan, which consists of a Spec and a meter.
type Limit struct {
	Meter string `json:"meter" minLength:"1" maxLength:"200" pattern:"^[A-Za-z0-9._:-]+$" doc:"The key of the meter whose hits the limit judges."`
	Spec
}

// Spec is the specification of a limit in a plan. Empty strings and nil mean the default.
type Spec struct {
	Name      string `json:"name" minLength:"1" maxLength:"200" pattern:"^[A-Za-z0-9._:-]+$" doc:"The limit's name. Each limit of a plan has another name."`
	Algorithm string `json:"algorithm" enum:"fixed_window,sliding_window,sliding_log,token_bucket,allocation,concurrency" doc:"When a hit of cost c is admitted:\n- fixed_window: used + c ≤ limit.\n- sliding_window: units of this window + faded units of the last window + c ≤ limit. The last window's units fade by the part of this window that has passed.\n- sliding_log: units younger than the window + c ≤ limit.\n- token_bucket: c tokens are there. There are burst tokens at first, refilled continuously at limit tokens a window. So burst and nearly limit more may be let in within one window.\n- allocation: used + c ≤ limit. No units come back by themselves.\n- concurrency: units in flight + c ≤ limit. The limit judges reservations only, and counts open ones."`
	Limit     int64  `json:"limit" minimum:"0" maximum:"999999999999999" doc:"Units in a window. Of an allocation, units in all; of a concurrency, units in flight. 0 is closed."`
	Window    string `json:"window,omitempty" doc:"The length of the window:\n- A duration: a whole number and one of us ms s m h d.\n- Of a fixed_window also calendar_day, calendar_week, calendar_month or calendar_year, in the customer's timezone.\n- Of a fixed_window also billing_period.\n- An allocation and a concurrency have no window."`
	Burst     *int64 `json:"burst,omitempty" minimum:"0" maximum:"999999999999999" doc:"A token bucket's capacity. When left out, limit."`
	Align     string `json:"align,omitempty" enum:"clock,first_hit" doc:"When windows start, for a fixed_window whose window is a duration:\n- clock (default): at multiples of the duration since the Unix epoch.\n- first_hit: with the first hit that is admitted after the last window ended."`
	Precision string `json:"precision,omitempty" doc:"Of a sliding_log: the length of the blocks that are counted, a duration.\n- When left out: 1us, which is exact.\n- A limit above 1000 needs a precision with at most 1000 blocks in the window."`
	Per       string `json:"per,omitempty" maxLength:"64" pattern:"^[A-Za-z0-9._:-]+$" doc:"The name of an attribute of hits.\n- Each value of the attribute has a bucket of its own.\n- A hit without the attribute uses the bucket of the empty value."`
	TTL       string `json:"ttl,omitempty" doc:"Of a concurrency: the longest that a reservation may be open.\n- A duration from 1ms to 24h.\n- A concurrency needs a ttl.\n- A longer ttl_ms is cut to the ttl."`
	Mode      string `json:"mode" required:"false" enum:"hard,soft,shadow" default:"hard" doc:"What the limit does with hits that do not fit:\n- hard: refuses them.\n- soft: admits them, and says exceeded.\n- shadow: never refuses. A shadow is charged only with what it would admit. It says exceeded where it would have refused."`
	OnOutage  string `json:"on_outage" required:"false" enum:"allow,deny" default:"allow" doc:"What happens to hits while the database is out of reach. A limit on a level meter denies them."`
	Notify    []int  `json:"notify,omitempty" maxItems:"5" minimum:"1" maximum:"100" doc:"At how many percent of the limit an event limit.threshold is raised: at most 5 whole percents.\n- Of a token_bucket, percent of the burst.\n- Only hard and soft limits without per have it.\n- Their window, or their time to fill, is an hour or more. An allocation has it, too."`
}

// Price is one price of a plan. Unit prices are decimal strings in major units.
type Price struct {
	Meter        string  `json:"meter" minLength:"1" maxLength:"200" pattern:"^[A-Za-z0-9._:-]+$" doc:"The key of the meter that the price is for."`
	Model        string  `json:"model" enum:"per_unit,package,graduated,volume" doc:"How units beyond the included ones are priced.\n- per_unit: each unit costs unit_price.\n- package: each begun package costs package_price.\n- graduated: each unit costs the price of its tier.\n- volume: all units cost the price of the tier that the total falls in."`
	UnitPrice    *string `json:"unit_price,omitempty" doc:"The price of a unit beyond the included ones, for the model per_unit: a decimal number in major units."`
	PackageSize  *int64  `json:"package_size,omitempty" minimum:"1" doc:"Units in a package, for the model package. Each begun package costs package_price."`
	PackagePrice *string `json:"package_price,omitempty" doc:"The price of a package, for the model package: a decimal number in major units."`
	Tiers        []Tier  `json:"tiers,omitempty" doc:"The tiers, for the models graduated and volume, at most 100. They are in the order of up_to."`
	Included     int64   `json:"included" required:"false" minimum:"0" maximum:"999999999999999" default:"0" doc:"Units that are free in a billing period. They come off first."`
	MinimumMinor *int64  `json:"minimum_minor,omitempty" minimum:"0" maximum:"999999999999999" doc:"The least that the meter costs in a billing period, in minor units."`
	MaximumMinor *int64  `json:"maximum_minor,omitempty" minimum:"0" maximum:"999999999999999" doc:"The most that the meter costs in a billing period, in minor units."`
	LevelBy      string  `json:"level_by,omitempty" enum:"average,peak,last" doc:"Of a level meter: which level of a billing period is billed.\n- average (default): what was held on the average.\n- peak: the most that was held at any instant.\n- last: what was held last."`
}

// OwnPriceRequest is the body of PUT /v1/customers/{key}/prices/{meter}, a Price without its meter.
type OwnPriceRequest struct {
	Model        string  `json:"model" enum:"per_unit,package,graduated,volume" doc:"How units beyond the included ones are priced.\n- per_unit: each unit costs unit_price.\n- package: each begun package costs package_price.\n- graduated: each unit costs the price of its tier.\n- volume: all units cost the price of the tier that the total falls in."`
	UnitPrice    *string `json:"unit_price,omitempty" doc:"The price of a unit beyond the included ones, for the model per_unit: a decimal number in major units."`
	PackageSize  *int64  `json:"package_size,omitempty" minimum:"1" doc:"Units in a package, for the model package. Each begun package costs package_price."`
	PackagePrice *string `json:"package_price,omitempty" doc:"The price of a package, for the model package: a decimal number in major units."`
	Tiers        []Tier  `json:"tiers,omitempty" doc:"The tiers, for the models graduated and volume, at most 100. They are in the order of up_to."`
	Included     int64   `json:"included" required:"false" minimum:"0" maximum:"999999999999999" default:"0" doc:"Units that are free in a billing period. They come off first."`
	MinimumMinor *int64  `json:"minimum_minor,omitempty" minimum:"0" maximum:"999999999999999" doc:"The least that the meter costs in a billing period, in minor units."`
	MaximumMinor *int64  `json:"maximum_minor,omitempty" minimum:"0" maximum:"999999999999999" doc:"The most that the meter costs in a billing period, in minor units."`
	LevelBy      string  `json:"level_by,omitempty" enum:"average,peak,last" doc:"Of a level meter: which level of a billing period is billed. average when left out."`
}

// OwnPrice is a price of a single customer that replaces the plan's price.
type OwnPrice struct {
	Price
	From time.Time `json:"from" doc:"The price counts for billing periods that start then or later."`
}

// Tier is one step of a graduated or volume price. UpTo is nil for the last tier.
type Tier struct {
	UpTo      *int64  `json:"up_to" required:"false" minimum:"1" doc:"The last unit of the tier, counted after the included units. Null for the last tier."`
	UnitPrice string  `json:"unit_price" doc:"The price of a unit in the tier, a decimal number in major units."`
	FlatPrice *string `json:"flat_price,omitempty" doc:"The price that the tier costs once when a unit falls in it, a decimal number in major units."`
}

// Meters lists the meters.
func (c *Client) Meters(ctx context.Context, query url.Values) (List[Meter], error) {
	return get[List[Meter]](ctx, c, with(at("meters"), query))
}

// Plans lists the plans.
func (c *Client) Plans(ctx context.Context, query url.Values) (List[Plan], error) {
	return get[List[Plan]](ctx, c, with(at("plans"), query))
}

// Plan reads a plan's latest version.
func (c *Client) Plan(ctx context.Context, key string) (Plan, error) {
	return get[Plan](ctx, c, at("plans", key))
}

// Version reads a version of a plan.
func (c *Client) Version(ctx context.Context, plan string, version int) (Plan, error) {
	return get[Plan](ctx, c, at("plans", plan, "versions", strconv.Itoa(version)))
}

// Versions lists the versions of a plan.
func (c *Client) Versions(ctx context.Context, plan string, query url.Values) (List[Plan], error) {
	return get[List[Plan]](ctx, c, with(at("plans", plan, "versions"), query))
}

// PutPlan writes a version of a plan, which is a PlanInput or its JSON. etag is the entity tag of the version
// that is replaced, or empty if the plan does not exist yet.
func (c *Client) PutPlan(ctx context.Context, key, etag string, plan any) error {
	_, err := c.Do(ctx, http.MethodPut, at("plans", key), IfMatch(etag), plan, nil)
	return err
}
