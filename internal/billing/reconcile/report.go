package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// Checks, in the order of the report.
const (
	ChargedIsBooked   = "charged_is_booked"
	CapsCountBooked   = "caps_count_booked"
	UsageIsBilled     = "usage_is_billed"
	UnitsAreBilled    = "units_are_billed"
	LinesAreTotals    = "lines_are_totals"
	RatedIsBilled     = "rated_is_billed"
	PeriodsAreChained = "periods_are_chained"
	NumbersHaveNoGap  = "numbers_have_no_gap"
	DigestsMatch      = "digests_match"
	AllIsClaimed      = "adjustments_are_claimed"
	DueIsSettled      = "due_is_settled"
	PaidOutIsPaidIn   = "paid_out_is_paid_in"
	CreditsAddUp      = "credits_add_up"
	GivenBackOnce     = "lines_are_given_back_once"
	PeriodsCanClose   = "periods_can_close"
	TermsAgree        = "terms_agree"
	ChangesExist      = "changes_exist"
)

// checks contains all checks.
var checks = []string{
	ChargedIsBooked, CapsCountBooked, UsageIsBilled, UnitsAreBilled, LinesAreTotals, RatedIsBilled, PeriodsAreChained, NumbersHaveNoGap, DigestsMatch,
	AllIsClaimed,
	GivenBackOnce, DueIsSettled, PaidOutIsPaidIn, CreditsAddUp, PeriodsCanClose, TermsAgree, ChangesExist,
}

// Report is the result of a run, in the format of client.Report.
type Report struct {
	OK       bool      `json:"ok"`
	Checks   []Check   `json:"checks"`
	Archived *Archived `json:"archived,omitempty"` // nil if no month was archived
}

// Archived describes the months that were moved out of the database. Charged units are compared with the sums
// of these months. Usage lines and corrections of these months can no longer be compared with hours.
type Archived struct {
	Before time.Time `json:"before"`
	Months int       `json:"months"`
}

// Check is the result of one condition that must be true for all rows of a kind.
type Check struct {
	Name     string         `json:"name"`
	Checked  int64          `json:"checked"`
	Rows     int64          `json:"rows"`
	Examples []Disagreement `json:"examples"`
}

// Disagreement is a row for which a check failed. Fields that do not apply are zero.
type Disagreement struct {
	Customer string     `json:"customer,omitempty"`
	Meter    string     `json:"meter,omitempty"`
	Invoice  string     `json:"invoice,omitempty"`
	Number   string     `json:"number,omitempty"`
	Seller   string     `json:"seller,omitempty"`
	At       *time.Time `json:"at,omitempty"`
	Detail   string     `json:"detail"`
	Expected *int64     `json:"expected,omitempty"`
	Found    *int64     `json:"found,omitempty"`

	customer int64 // id
	meter    int32 // id, used if Meter is unknown
}

// maxExamples is the maximum number of examples of a check.
const maxExamples = 10

// differs returns a copy of e with an expected and a found number.
func (e Disagreement) differs(expected, found int64, detail string) Disagreement {
	e.Expected, e.Found, e.Detail = &expected, &found, detail
	return e
}

// says returns a copy of e with a text.
func (e Disagreement) says(detail string) Disagreement {
	e.Detail = detail
	return e
}

// on returns a copy of e with an instant, given in µs.
func (e Disagreement) on(at int64) Disagreement {
	t := time.UnixMicro(at).UTC()
	e.At = &t
	return e
}

const (
	selectCustomerKeys = `SELECT id, key FROM customers WHERE id = ANY ($1::bigint[])`
	selectMeterKeys    = `SELECT id, key FROM meters WHERE id = ANY ($1::bigint[])`
)

// name replaces ids with keys. An id without a key is shown as an id.
func (r *Report) name(ctx context.Context, tx pgx.Tx) error {
	customers, meters := make(map[int64]string), make(map[int64]string)
	for _, e := range r.examples() {
		customers[e.customer], meters[int64(e.meter)] = "", ""
	}
	if err := errors.Join(keysOf(ctx, tx, customers, selectCustomerKeys), keysOf(ctx, tx, meters, selectMeterKeys)); err != nil {
		return err
	}
	for _, e := range r.examples() {
		if e.customer != 0 {
			e.Customer = cmp.Or(customers[e.customer], fmt.Sprintf("id %d", e.customer))
		}
		if e.meter != 0 {
			e.Meter = cmp.Or(meters[int64(e.meter)], fmt.Sprintf("id %d", e.meter))
		}
	}
	return nil
}

func (r *Report) examples() (all []*Disagreement) {
	for c := range r.Checks {
		for e := range r.Checks[c].Examples {
			all = append(all, &r.Checks[c].Examples[e])
		}
	}
	return all
}

func keysOf(ctx context.Context, tx pgx.Tx, keys map[int64]string, statement string) error {
	var id int64
	var key string
	rows, _ := tx.Query(ctx, statement, slices.Collect(maps.Keys(keys)))
	_, err := pgx.ForEachRow(rows, []any{&id, &key}, func() error {
		keys[id] = key
		return nil
	})
	return err
}
