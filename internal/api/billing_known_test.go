package api

import (
	"fmt"
	"testing"
)

// aheadNode has customer acme on a plan whose base of 2,800 is due in advance, since January 1.
func aheadNode(t *testing.T) *node {
	t.Helper()
	n := billedNode(t)
	n.want(201, "PUT", "/v1/plans/ahead", `{"name":"A","currency":"USD","interval":"month","base_price_minor":2800,"base_in":"advance"}`)
	n.want(201, "PUT", "/v1/customers/acme", `{"name":"C","plan":"ahead","billing_anchor":"2026-01-01T00:00:00","test_clock":"clock"}`)
	return n
}

// bases are the base and unused lines of the newest invoice of a period: from, to and amount.
func (n *node) bases(key string) []string {
	n.t.Helper()
	var newest map[string]any
	for _, i := range n.want(200, "GET", "/v1/customers/"+key+"/invoices", "").json["items"].([]any) {
		if i := i.(map[string]any); i["kind"] == "period" {
			newest = i
		}
	}
	return basesIn(newest)
}

// basesIn are the base and unused lines of an invoice.
func basesIn(invoice map[string]any) (all []string) {
	for _, l := range invoice["lines"].([]any) {
		if l := l.(map[string]any); l["kind"] == "base" || l["kind"] == "unused" {
			all = append(all, fmt.Sprintf("%s %.10s/%.10s %v", l["kind"], l["from"], l["to"], l["amount_minor"]))
		}
	}
	return all
}

// Base in advance is charged to the end that was known when its period began. ends_at is written,
// or lifted, right after that, while the period before waits for its close.
func TestEndIsKnownWhenThePeriodBegan(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before, after, again string // what is written in January, and twice three seconds into February
		february             string // what January's invoice says of February's base
		own                  string // and February's own
	}{
		"written": {
			`{}`, `{"ends_at":"2026-02-10T00:00:00Z"}`, `{"ends_at":"2026-02-15T00:00:00Z"}`, "[base 2026-02-01/2026-03-01 2800]",
			"[unused 2026-02-15/2026-03-01 -1400]",
		},
		"lifted": {
			`{"ends_at":"2026-02-15T00:00:00Z"}`, `{}`, `{"due_days":3}`,
			"[base 2026-02-01/2026-02-15 1400]", "[base 2026-02-15/2026-03-01 1400 base 2026-03-01/2026-04-01 2800]",
		},
		"moved": {
			`{"ends_at":"2026-02-08T00:00:00Z"}`, `{}`, `{"ends_at":"2026-02-15T00:00:00Z"}`, "[base 2026-02-01/2026-02-08 700]", "[base 2026-02-08/2026-02-15 700]",
		},
		"as it is": {
			`{"ends_at":"2026-02-15T00:00:00Z"}`, `{"ends_at":"2026-02-15T00:00:00Z","due_days":3}`, `{"ends_at":"2026-02-15T00:00:00Z"}`,
			"[base 2026-02-01/2026-02-15 1400]", "[base 2026-02-01/2026-02-15 1400]", // February costs nothing more, and has no invoice
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := aheadNode(t)
			n.bill(200, "acme", c.before)
			n.setTo("2026-02-01T00:00:03Z")
			n.bill(200, "acme", c.after)
			n.bill(200, "acme", c.again)
			n.settled("2026-02-01T00:00:10Z")
			if got := fmt.Sprint(n.bases("acme")); got != c.february {
				t.Errorf("January's invoice: %s, want %s", got, c.february)
			}
			n.settled("2026-03-01T00:00:10Z")
			if got := fmt.Sprint(n.bases("acme")); got != c.own {
				t.Errorf("February's invoice: %s, want %s", got, c.own)
			}
			n.agreed(name)
		})
	}
}

// A change at once at the very start of the running period has it begin again: then all is known that
// was written before the change.
func TestEndIsKnownToAPeriodThatBeginsAnew(t *testing.T) {
	t.Parallel()
	n := aheadNode(t)
	n.want(201, "PUT", "/v1/plans/other", `{"name":"O","currency":"USD","interval":"month","base_price_minor":5600,"base_in":"advance"}`)
	n.setTo("2026-02-01T00:00:00Z")
	n.bill(200, "acme", `{"ends_at":"2026-02-15T00:00:00Z"}`)
	n.onto(200, "other", `,"change":"now"`)
	n.settled("2026-02-01T00:00:10Z")
	if got := fmt.Sprint(n.bases("acme")); got != "[base 2026-02-01/2026-02-15 2800]" {
		t.Error(got)
	}
}

// A change at once after that start ends the period, and takes nothing from what the one before has
// charged in advance for it.
func TestEndIsKnownBehindACut(t *testing.T) {
	t.Parallel()
	n := aheadNode(t)
	n.want(201, "PUT", "/v1/plans/other", `{"name":"O","currency":"USD","interval":"month","base_price_minor":5600,"base_in":"advance"}`)
	n.setTo("2026-02-01T00:00:03Z")
	n.bill(200, "acme", `{"ends_at":"2026-02-15T00:00:00Z"}`)
	n.onto(200, "other", `,"change":"now"`)
	n.settled("2026-02-01T00:00:10Z")
	if got := fmt.Sprint(n.bases("acme")); got != "[base 2026-02-01/2026-03-01 2800]" {
		t.Error("January's invoice:", got)
	}
	n.settled("2026-02-16T00:00:00Z")
	n.agreed("after the end")
}

// Archiving, too, ends a period that began with another end in sight.
func TestArchivingWasNotKnown(t *testing.T) {
	t.Parallel()
	n := aheadNode(t)
	n.bill(200, "acme", `{"ends_at":"2026-02-15T00:00:00Z"}`)
	n.setTo("2026-02-01T00:00:03Z")
	n.want(204, "DELETE", "/v1/customers/acme", "")
	n.settled("2026-02-01T00:00:13Z")
	if got := fmt.Sprint(n.bases("acme")); got != "[unused 2026-02-01/2026-02-15 -1400]" {
		t.Error(got)
	}
}

// Billing cannot end at the start of a period whose base in advance is on an invoice: no invoice
// would come that could give it back. A microsecond later it can.
func TestEndAtTheStartOfAPaidPeriod(t *testing.T) {
	t.Parallel()
	n := aheadNode(t)
	n.made("arrears")
	n.settled("2026-02-01T12:00:00Z")
	n.bill(409, "acme", `{"ends_at":"2026-02-01T00:00:00Z"}`)
	n.bill(200, "acme", `{"ends_at":"2026-02-01T00:00:00.000001Z"}`)
	n.bill(200, "arrears", `{"ends_at":"2026-02-01T00:00:00Z"}`)
	n.settled("2026-02-01T13:00:00Z")
	if got := fmt.Sprint(n.bases("acme")); got != "[unused 2026-02-01/2026-03-01 -2800]" {
		t.Error(got)
	}
	n.agreed("after the end")
}

// Archiving on a clock that was set back to the start of such a period gives it back, too.
func TestArchivedAtTheStartOfAPaidPeriod(t *testing.T) {
	t.Parallel()
	n := aheadNode(t)
	n.settled("2026-02-01T12:00:00Z")
	n.setTo("2026-01-31T12:00:00Z")
	n.want(204, "DELETE", "/v1/customers/acme", "")
	n.settled("2026-02-02T00:00:00Z")
	if got := fmt.Sprint(n.bases("acme")); got != "[unused 2026-02-01/2026-03-01 -2800]" {
		t.Error(got)
	}
	n.agreed("after archiving")
}

// Billing begins again before its last period is closed. The new chain's base in advance is on its
// opening, and on nothing else.
func TestBaseOfANewChainIsChargedOnce(t *testing.T) {
	t.Parallel()
	n := aheadNode(t)
	n.bill(200, "acme", `{"ends_at":"2026-01-15T00:00:00Z"}`)
	n.setTo("2026-01-15T00:00:05Z")
	n.bill(200, "acme", `{}`)
	n.settled("2026-01-15T12:00:00Z")
	sum := 0.0
	for _, i := range n.want(200, "GET", "/v1/customers/acme/invoices", "").json["items"].([]any) {
		sum += i.(map[string]any)["total_minor"].(float64)
	}
	if sum != 2800 { // of January, half and half
		t.Errorf("January costs %v", sum)
	}
}

// An end that moves later than it was known is charged from the known end on, on the period's own
// invoice; one that moves earlier gives back from there on. What an invoice held that became void is
// neither charged again nor given back.
func TestAnEndThatMoves(t *testing.T) {
	t.Parallel()
	ends := func(days ...string) func(n *node) {
		return func(n *node) {
			for _, day := range days {
				n.bill(200, "acme", `{"ends_at":"2026-02-`+day+`T00:00:00Z"}`)
			}
		}
	}
	for name, c := range map[string]struct {
		do   func(n *node)
		want string // base and unused of February's own invoice
	}{
		"later":                    {ends("20"), "[base 2026-02-15/2026-02-20 500]"},
		"later and later":          {ends("20", "25"), "[base 2026-02-15/2026-02-25 1000]"},
		"later, and back a little": {ends("25", "20"), "[base 2026-02-15/2026-02-20 500]"},
		"later, and then earlier":  {ends("25", "12"), "[unused 2026-02-12/2026-02-15 -300]"},
		"lifted":                   {func(n *node) { n.bill(200, "acme", `{}`) }, "[base 2026-02-15/2026-03-01 1400 base 2026-03-01/2026-04-01 2800]"},
		"lifted, and a cut": {func(n *node) {
			n.bill(200, "acme", `{}`)
			n.setTo("2026-02-20T00:00:00Z")
			n.onto(200, "max", `,"change":"now"`)
		}, "[base 2026-02-15/2026-02-20 500]"},
		"later than what is void": {func(n *node) {
			all := n.invoicesOf("acme")
			n.want(200, "POST", "/v1/invoices/"+all[len(all)-1]+"/void", `{"reason":"x"}`)
			ends("20")(n)
		}, "[base 2026-02-15/2026-02-20 500]"},
	} {
		t.Run(name, func(t *testing.T) {
			n := aheadNode(t)
			n.bill(200, "acme", `{"ends_at":"2026-02-15T00:00:00Z"}`)
			n.settled("2026-02-10T00:00:00Z")
			if got := fmt.Sprint(n.bases("acme")); got != "[base 2026-02-01/2026-02-15 1400]" {
				t.Fatal(got)
			}
			c.do(n)
			n.settled("2026-03-02T00:00:00Z")
			found := ""
			for _, i := range n.want(200, "GET", "/v1/customers/acme/invoices", "").json["items"].([]any) {
				if i := i.(map[string]any); i["kind"] == "period" && i["period_start"] == "2026-02-01T00:00:00Z" {
					found = fmt.Sprint(basesIn(i))
				}
			}
			if found != c.want {
				t.Errorf("%s, want %s", found, c.want)
			}
			n.agreed(name)
		})
	}
}
