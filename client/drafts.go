package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"
)

// Draft is a plan that has not been published.
type Draft struct {
	Key           string          `json:"key" doc:"The plan's key."`
	BasedOn       int             `json:"based_on" doc:"The version of the plan that the draft was begun on. 0: the plan did not exist."`
	LatestVersion int             `json:"latest_version" doc:"The newest version of the plan now. If it is not based_on, somebody has published meanwhile. 0: the plan does not exist."`
	SavedAt       time.Time       `json:"saved_at" doc:"The instant at which the draft was last saved, RFC 3339 in UTC."`
	Plan          json.RawMessage `json:"plan" doc:"The draft as it was sent."`
	Problems      []FieldError    `json:"problems" doc:"What PUT /v1/plans/{key} would refuse. Empty: the draft can be published."`
}

// CompareRequest is the body of POST /v1/plans/{key}/draft/compare.
type CompareRequest struct {
	Customer *string `json:"customer,omitempty" minLength:"1" maxLength:"200" doc:"Only this customer, whatever plan it is on. When left out, the 1,000 customers on the plan with the most units."`
}

// Compare is the effect of a plan and of its draft on past usage.
type Compare struct {
	From      time.Time     `json:"from" doc:"The start of the usage that is compared, RFC 3339 in UTC: 30 days before to, or later if older months were archived."`
	To        time.Time     `json:"to" doc:"The exclusive end of the usage that is compared: the start of the running hour, RFC 3339 in UTC."`
	Customers int           `json:"customers" doc:"Customers that were compared."`
	Chosen    int           `json:"chosen" doc:"Customers that were to be compared. There are more than were compared if the time did not suffice."`
	Others    bool          `json:"others" doc:"True if the plan has other customers, who are left out."`
	Asked     int64         `json:"asked" doc:"Units that hits asked for: admitted ones, and refused ones with every retry."`
	Recorded  int64         `json:"recorded_refused" doc:"Units of asked that were refused then. This is a statistic."`
	Currency  string        `json:"currency" doc:"The ISO 4217 code of the draft's currency, in which the amounts are."`
	InForce   CompareSide   `json:"in_force" doc:"The outcome of the plans in force."`
	Draft     CompareSide   `json:"draft" doc:"The outcome of the draft."`
	Limits    []CompareRow  `json:"limits" doc:"The outcome of each limit of the plans in force and of the draft."`
	Notes     []CompareNote `json:"notes" doc:"Notes on what the numbers leave open."`
}

// CompareNote is a limitation of the numbers.
type CompareNote struct {
	Name string `json:"name" enum:"retries,billed,time,others,spread,bounds,unknown" doc:"The name of the note. It never changes, so clients may branch on it."`
	Text string `json:"text" doc:"The note, for people."`
}

// CompareRange is a range that contains a number.
type CompareRange struct {
	Least int64 `json:"least" doc:"The least that the number may be."`
	Most  int64 `json:"most" doc:"The most that the number may be. It equals least if the number is exact."`
}

// CompareSide is the effect of one of the two plans.
type CompareSide struct {
	Refused   CompareRange  `json:"refused" doc:"Units that would be refused."`
	Customers CompareRange  `json:"customers_refused" doc:"Customers with a refusal."`
	Billed    *CompareRange `json:"billed_minor,omitempty" doc:"What would be billed, without taxes, in minor units. Left out where an amount is too large to be billed."`
}

// CompareRow is one limit.
type CompareRow struct {
	Meter   string       `json:"meter" doc:"The meter's key."`
	Limit   string       `json:"limit" doc:"The limit's name."`
	InForce *CompareCell `json:"in_force,omitempty" doc:"The outcome of the limit in the plans in force. Absent if no customer's plan in force has the limit."`
	Draft   *CompareCell `json:"draft,omitempty" doc:"The outcome of the limit in the draft. Absent if the draft does not have the limit."`
}

// CompareCell is the effect of a limit of one plan.
type CompareCell struct {
	How       string       `json:"how" enum:"by_hour,spread,bounds,unknown,admits" doc:"How the limit was played:\n- by_hour: from the hours of usage, exact for hits of one unit.\n- spread: from the hours of usage, with the units of each spread evenly.\n- bounds: only a least and a most is known, since usage is stored by the hour.\n- unknown: it cannot be known from hours, as of an allocation.\n- admits: the limit is soft or a shadow, and refuses nothing."`
	Refused   CompareRange `json:"refused" doc:"Units that would be refused."`
	Customers CompareRange `json:"customers" doc:"Customers of whom the limit would refuse units."`
}

// PlayRequest is the body of POST /v1/plans/{key}/draft/play.
type PlayRequest struct {
	Meter   string  `json:"meter" minLength:"1" maxLength:"200" doc:"The key of the meter whose limits are played."`
	Traffic Traffic `json:"traffic" doc:"The hits that are played, as a pattern."`
}

// Traffic specifies when hits arrive. The length of the patterns is a window.
type Traffic struct {
	Pattern string        `json:"pattern" enum:"steady,bursts,edge,own" doc:"When hits come, beside the steady ones:\n- steady: no others.\n- bursts: bursts, each much shorter than a window.\n- edge: a burst on each side of the edge between two windows.\n- own: those of hits, and no others."`
	Window  string        `json:"window" doc:"The length by which the pattern is laid out, a duration such as 1m. Best the window of a limit."`
	Windows int64         `json:"windows,omitempty" default:"4" minimum:"1" maximum:"60" doc:"How many windows the play lasts."`
	Steady  int64         `json:"steady,omitempty" default:"0" minimum:"0" maximum:"10000" doc:"Hits in each window, evenly spread."`
	Burst   int64         `json:"burst,omitempty" default:"0" minimum:"0" maximum:"10000" doc:"Hits of each burst."`
	Cost    int64         `json:"cost,omitempty" default:"1" minimum:"1" maximum:"999999999999999" doc:"Units of each hit."`
	Hits    []TrafficHits `json:"hits,omitempty" maxItems:"10000" doc:"The hits of the pattern own."`
}

// TrafficHits is one hit of the pattern own.
type TrafficHits struct {
	AtUS int64 `json:"at_us" minimum:"0" doc:"Microseconds since the start of the play."`
	Cost int64 `json:"cost" required:"false" minimum:"1" maximum:"999999999999999" default:"1" doc:"Units of the hit."`
}

// Plays contains a play of the draft and a play of the plan in force.
type Plays struct {
	Draft   Play  `json:"draft" doc:"The hits through the draft."`
	InForce *Play `json:"in_force,omitempty" doc:"The same hits through the newest version of the plan. Left out where there is none."`
}

// Play is the result of traffic that was sent through limits.
type Play struct {
	LengthUS      int64       `json:"length_us" doc:"How long the play lasts, in microseconds."`
	Admitted      PlaySum     `json:"admitted" doc:"The hits that were admitted."`
	Refused       PlaySum     `json:"refused" doc:"The hits that were refused."`
	LongestWaitMS int64       `json:"longest_wait_ms" doc:"The longest retry_after_ms of a refusal, of those that waiting lifts."`
	Hopeless      int64       `json:"hopeless" doc:"Refusals that no wait lifts."`
	Refusal       *string     `json:"refusal" doc:"What a refusal says: that with the longest wait. Null: nothing was refused."`
	Hits          []PlayedHit `json:"hits" doc:"What became of each hit, in order."`
	Limits        []PlayLimit `json:"limits" doc:"The limits of the meter, without those of concurrency, which judge reservations only."`
}

// PlaySum is a number of hits and their units.
type PlaySum struct {
	Hits  int64 `json:"hits" doc:"The number of hits."`
	Units int64 `json:"units" doc:"The sum of their costs, in units."`
}

// PlayedHit is the result of one hit.
type PlayedHit struct {
	AtUS         int64  `json:"at_us" doc:"Microseconds since the start of the play."`
	Cost         int64  `json:"cost" doc:"Units of the hit."`
	Admitted     bool   `json:"admitted" doc:"True if the hit was admitted."`
	RetryAfterMS *int64 `json:"retry_after_ms" doc:"Of a refusal, the wait in milliseconds after which the hit would be admitted. Null means never."`
}

// PlayLimit is the result of one limit.
type PlayLimit struct {
	Name      string  `json:"name" doc:"The limit's name."`
	Algorithm string  `json:"algorithm" doc:"The limit's algorithm, as in the plan: fixed_window, sliding_window, sliding_log, token_bucket, allocation or concurrency."`
	Mode      string  `json:"mode" doc:"The limit's mode, as in the plan: hard, soft or shadow."`
	Limit     int64   `json:"limit" doc:"Units in a window. Of an allocation, units in all."`
	Burst     *int64  `json:"burst,omitempty" doc:"Of a token bucket, the capacity in units."`
	Window    string  `json:"window" doc:"The window, as in the plan. Empty for an allocation."`
	Refused   int64   `json:"refused" doc:"Hits that the limit did not admit. Those passed all the same if it is soft or a shadow."`
	Level     []int64 `json:"level" doc:"Units that counted against the limit, at 240 instants evenly spread from the start on."`
	Fullest   struct {
		FromUS int64 `json:"from_us" doc:"The start of the window, in microseconds since the start of the play."`
		Units  int64 `json:"units" doc:"Units that were admitted in the window."`
	} `json:"fullest" doc:"The window of the limit's length in which the most units were admitted, wherever it begins. 0 units where the limit has no length of its own."`
}

// Draft reads the draft of a plan, with its entity tag.
func (c *Client) Draft(ctx context.Context, plan string) (Draft, string, error) {
	return tagged[Draft](ctx, c, at("plans", plan, "draft"))
}

// PutDraft stores a draft, which is a PlanInput or its JSON. etag is the entity tag of the draft that is
// replaced, or empty if there is no draft yet. rebase bases the draft on the plan's newest version.
func (c *Client) PutDraft(ctx context.Context, plan, etag string, rebase bool, draft any) error {
	query := url.Values{}
	if rebase {
		query.Set("rebase", "true")
	}
	_, err := c.Do(ctx, http.MethodPut, with(at("plans", plan, "draft"), query), IfMatch(etag), draft, nil)
	return err
}

// DeleteDraft deletes the draft of a plan.
func (c *Client) DeleteDraft(ctx context.Context, plan string) error {
	return c.remove(ctx, at("plans", plan, "draft"))
}

// PlayDraft sends simulated traffic through a draft.
func (c *Client) PlayDraft(ctx context.Context, plan string, in *PlayRequest) (Plays, error) {
	return post[Plays](ctx, c, at("plans", plan, "draft", "play"), in)
}

// CompareDraft compares a draft with the past 30 days.
func (c *Client) CompareDraft(ctx context.Context, plan string, in *CompareRequest) (Compare, error) {
	return post[Compare](ctx, c, at("plans", plan, "draft", "compare"), in)
}
