package api

import (
	"fmt"
	"testing"
)

// levelNode is a billedNode with the level meter seats, and customer acme from 1 January at midnight on a
// plan with one price, whose fields are given.
func levelNode(t *testing.T, price string) *node {
	t.Helper()
	n := billedNode(t)
	n.want(201, "PUT", "/v1/meters/seats", `{"unit":"seat","kind":"level"}`)
	n.want(201, "PUT", "/v1/plans/team", `{"name":"Team","currency":"USD","interval":"month","base_price_minor":0,"prices":[{"meter":"seats",`+price+`}]}`)
	n.want(201, "PUT", "/v1/customers/acme", `{"name":"C","plan":"team","billing_anchor":"2026-01-01T00:00:00","test_clock":"clock"}`)
	return n
}

// holds sets the clock and what acme holds then.
func (n *node) holds(now string, level int) {
	n.t.Helper()
	n.setTo(now)
	n.want(200, "PUT", "/v1/customers/acme/levels/seats", fmt.Sprintf(`{"level":%d}`, level))
}

// closed closes acme's period that ends at an instant, which the clock has reached.
func (n *node) closed(end string) {
	n.t.Helper()
	n.setTo(end[:len(end)-3] + "11Z")
	n.until("acme", end)
}

// seatsLine checks the usage line of acme's period that begins at an instant.
func (n *node) seatsLine(start string, by, exact string, quantity, included, minor int64, applied any) {
	n.t.Helper()
	for _, item := range n.want(200, "GET", "/v1/customers/acme/invoices", "").json["items"].([]any) {
		invoice := item.(map[string]any)
		if invoice["period_start"] != start {
			continue
		}
		line := invoice["lines"].([]any)[0].(map[string]any)
		got := fmt.Sprint(line["kind"], line["level"], line["quantity"], line["included"], line["amount_minor"], line["applied"])
		want := fmt.Sprint("usage", map[string]any{"by": by, "exact": exact}, float64(quantity), float64(included), float64(minor), applied)
		if got != want {
			n.t.Errorf("the period from %s: %s, want %s", start, got, want)
		}
		return
	}
	n.t.Errorf("no invoice of the period from %s", start)
}

// January has 31 days. 3 seats for 10 days, then 5 for 21 days: 135 seat days, 135/31 = 4.35483870…, that
// is 4.354839 on the average. At 10.01 dollars that is 43.59193839: 4359 cents. February has 28 days with 5
// seats until noon of the 14th, then 2: (5·13.5 + 2·14.5)/28 = 96.5/28 = 3.44642857…, that is 3.446429. At
// 10.01 it is 34.49875429: 3450 cents.
func TestAverageOfAMonthWithAChange(t *testing.T) {
	t.Parallel()
	n := levelNode(t, `"model":"per_unit","unit_price":"10.01"`)
	n.holds("2026-01-01T00:00:00Z", 3)
	n.holds("2026-01-11T00:00:00Z", 5)
	n.closed("2026-02-01T00:00:00Z")
	n.holds("2026-02-14T12:00:00Z", 2)
	n.closed("2026-03-01T00:00:00Z")
	n.seatsLine("2026-01-01T00:00:00Z", "average", "4.354839", 4, 0, 4359, nil)
	n.seatsLine("2026-02-01T00:00:00Z", "average", "3.446429", 3, 0, 3450, nil)
}

// In January 2 seats are held, 9 from 10:05 to 10:40 of one day: the peak is 9, 9 dollars. At the end 7 are
// held, and at the very start of February 4: the 7 were never held in February, its peak is 4. In
// March nothing changes at the start, and the 4 fall to 1 a microsecond later: its peak is 4. In April 1 is
// held before the start, 6 at it, for 1 µs: its peak is 6.
func TestPeakWithinAnHourAndAtTheStart(t *testing.T) {
	t.Parallel()
	n := levelNode(t, `"model":"per_unit","unit_price":"1","level_by":"peak"`)
	n.holds("2026-01-01T00:00:00Z", 2)
	n.holds("2026-01-12T10:05:00Z", 9)
	n.holds("2026-01-12T10:40:00Z", 2)
	n.holds("2026-01-31T23:59:59.999999Z", 7)
	n.holds("2026-02-01T00:00:00Z", 4)
	n.closed("2026-02-01T00:00:00Z")
	n.holds("2026-03-01T00:00:00.000001Z", 1)
	n.closed("2026-03-01T00:00:00Z")
	n.holds("2026-04-01T00:00:00Z", 6)
	n.holds("2026-04-01T00:00:00.000001Z", 0)
	n.closed("2026-04-01T00:00:00Z")
	n.closed("2026-05-01T00:00:00Z")
	n.seatsLine("2026-01-01T00:00:00Z", "peak", "9.000000", 9, 0, 900, nil)
	n.seatsLine("2026-02-01T00:00:00Z", "peak", "4.000000", 4, 0, 400, nil)
	n.seatsLine("2026-03-01T00:00:00Z", "peak", "4.000000", 4, 0, 400, nil)
	n.seatsLine("2026-04-01T00:00:00Z", "peak", "6.000000", 6, 0, 600, nil)
}

// Of January the last level is that just before February: 8 fall to 3 at its last microsecond, so it is 3, 6
// dollars. 3 fall to 0 at the very start of March, so that of February is 3 still. Nothing is held in March: 0.
func TestLastAMicrosecondBeforeAndAtTheBoundary(t *testing.T) {
	t.Parallel()
	n := levelNode(t, `"model":"per_unit","unit_price":"2","level_by":"last"`)
	n.holds("2026-01-05T00:00:00Z", 8)
	n.holds("2026-01-31T23:59:59.999999Z", 3)
	n.closed("2026-02-01T00:00:00Z")
	n.holds("2026-03-01T00:00:00Z", 0)
	n.closed("2026-03-01T00:00:00Z")
	n.closed("2026-04-01T00:00:00Z")
	n.seatsLine("2026-01-01T00:00:00Z", "last", "3.000000", 3, 0, 600, nil)
	n.seatsLine("2026-02-01T00:00:00Z", "last", "3.000000", 3, 0, 600, nil)
	n.seatsLine("2026-03-01T00:00:00Z", "last", "0.000000", 0, 0, 0, nil)
}

// Archived at noon of 10 January: 9.5 of 31 days. 7 seats for 4 days, then 12 for 5.5 days: 94/9.5 =
// 9.89473684…, that is 9.894737 on the average; 3 are included, whole, and 6.894737 cost.
//   - graduated, 5 at 1.11 and a flat 2, then 0.77 and a flat 1: 5.55 + 2 + 1.894737·0.77 + 1 = 10.00894749
//     dollars, of which 9.5/31 is 3.06725…: 307 cents.
//   - packages of 2 for 3.33: 4 are begun, 13.32 dollars, of which 9.5/31 is 4.08193…: 408 cents.
//   - 0.0211 a unit: 14.54789507 cents, of which 9.5/31 is 4.45822…: 4 cents. Rounded to 15 before the cut it
//     would be 4.59677…, that is 5: rounding is done once.
func TestTiersAndPackagesOfALevelCutByArchiving(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, price string
		minor       int64
	}{
		{
			"graduated", `"model":"graduated","included":3,"tiers":[{"up_to":5,"unit_price":"1.11","flat_price":"2"},{"up_to":null,"unit_price":"0.77","flat_price":"1"}]`,
			307,
		},
		{"package", `"model":"package","included":3,"package_size":2,"package_price":"3.33"`, 408},
		{"rounded once", `"model":"per_unit","included":3,"unit_price":"0.0211"`, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			n := levelNode(t, c.price)
			n.holds("2026-01-01T00:00:00Z", 7)
			n.holds("2026-01-05T00:00:00Z", 12)
			n.setTo("2026-01-10T12:00:00Z")
			n.want(204, "DELETE", "/v1/customers/acme", "")
			n.setTo("2026-01-10T14:00:00Z") // drafted and finalized
			n.until("acme", "2026-01-10T12:00:00Z")
			n.seatsLine("2026-01-01T00:00:00Z", "average", "9.894737", 10, 3, c.minor, nil)
		})
	}
}

// R(q) is held between the whole minimum and maximum, then cut. The account ends at noon of 10 January,
// after 9.5 of 31 days; 4 seats are held, at 10 dollars: 40 dollars.
//   - minimum 50.01: 5001·9.5/31 = 1532.5645…: 1533 cents.
//   - maximum 20.03: 2003·9.5/31 = 613.8225…: 614 cents.
//   - minimum 30, maximum 50: neither moves it, 4000·9.5/31 = 1225.806…: 1226 cents.
func TestMinimumAndMaximumOfALevelWithACut(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		bounds  string
		minor   int64
		applied any
	}{
		{`"minimum_minor":5001`, 1533, "minimum"},
		{`"maximum_minor":2003`, 614, "maximum"},
		{`"minimum_minor":3000,"maximum_minor":5000`, 1226, nil},
	} {
		t.Run(c.bounds, func(t *testing.T) {
			t.Parallel()
			n := levelNode(t, `"model":"per_unit","unit_price":"10","level_by":"last",`+c.bounds)
			n.holds("2026-01-01T00:00:00Z", 4)
			n.bill(200, "acme", `{"ends_at":"2026-01-10T12:00:00Z"}`)
			n.closed("2026-01-10T12:00:00Z")
			n.seatsLine("2026-01-01T00:00:00Z", "last", "4.000000", 4, 0, c.minor, c.applied)
		})
	}
}

// Billing is to start on 15 January. 4 seats are held from the 5th, 6 from the 12th. On the 13th starts_at is
// set back to the 10th: of 22 days to February, 2 had 4 seats and 20 have 6: 128/22 = 5.8181818…, that is
// 5.818182. At a dollar that is 581.8182 cents, of which 22/31 is 412.9032…: 413.
func TestLevelsOfAStartSetBack(t *testing.T) {
	t.Parallel()
	n := levelNode(t, `"model":"per_unit","unit_price":"1"`)
	n.bill(200, "acme", `{"starts_at":"2026-01-15T00:00:00Z"}`)
	n.holds("2026-01-05T00:00:00Z", 4)
	n.holds("2026-01-12T00:00:00Z", 6)
	n.setTo("2026-01-13T00:00:00Z")
	n.bill(200, "acme", `{"starts_at":"2026-01-10T00:00:00Z"}`)
	n.closed("2026-02-01T00:00:00Z")
	n.seatsLine("2026-01-10T00:00:00Z", "average", "5.818182", 6, 0, 413, nil)
}
