package billing

import (
	"slices"

	"quotad/client"
)

// The kinds of invoices.
const (
	KindPeriod     = "period"
	KindOpening    = "opening"
	KindCreditNote = "credit_note"
)

// The statuses of invoices.
const (
	StatusDraft     = "draft"
	StatusFinalized = "finalized"
	StatusPaid      = "paid"
	StatusVoid      = "void"
	StatusCredited  = "credited"

	// StatusOverdue chooses invoices that are finalized, with something open and due_at over. None has it.
	StatusOverdue = "overdue"
)

// The series of numbers that a seller has. Customers on test clocks are numbered in one of their
// own, so that what is tried out uses up no number of the others.
const (
	SeriesLive = "live"
	SeriesTest = "test"
)

// TestPrefix begins the numbers of the series test, before the seller's own prefix.
const TestPrefix = "TEST-"

// PrefixIn is what the numbers of a series begin with, where prefix is the seller's.
func PrefixIn(series, prefix string) string {
	if series == SeriesTest {
		return TestPrefix + prefix
	}
	return prefix
}

// The kinds of lines, in the order in which an invoice lists them. The base of the period that
// begins comes after unused.
const (
	LineBase       = "base"
	LineUsage      = "usage"
	LineMinimum    = "minimum"
	LineUnused     = "unused"
	LineCorrection = "correction"
	LineCharge     = "charge"
)

// Invoice is an invoice of whatever kind and status. Its numbers are a draft's until it is
// finalized; then they never change.
type Invoice struct {
	ID           string // UUID; "" of an upcoming one
	Number       string // prefix and integer; "" of a draft
	Kind, Status string
	Customer     int64
	CustomerKey  string
	TestClock    string // that the customer lives by; "" is PostgreSQL's time
	Zone         string // the customer's timezone, by which documents say dates; "" is UTC
	Currency     string
	Chain, N     int // the period that it is of
	PeriodStart  int64
	PeriodEnd    int64
	PlanID       int32
	PriceVersion int
	Of           string // the invoice that a credit note or reissue is about
	OfNumber     string // its number

	Lines  []Line
	Taxes  []Tax
	Totals // of the lines and taxes

	CreditsMinor   int64 // applied
	AmountDueMinor int64 // Total − Credits, at least 0
	CreditedMinor  int64 // Σ of its credit notes so far, taxes included, at least 0

	Seller         Seller
	Buyer          Buyer
	OrderReference string   // the buyer's
	Notes          []string // lines of the account

	DueDays     int
	MadeAt      int64
	FinalizeAt  int64
	FinalizedAt *int64
	DueAt       *int64
	Overdue     bool        // something is open, and DueAt is over by the customer's clock
	Held        string      // why it stays a draft
	Waiting     []Corrected // corrections that are too large for it: it waits for them to be smaller
	Payments    []Payment   // of it, in the order of n
	NotedMinor  int64       // what credit notes took of what was open
	Money       *NoteMoney  // of a credit note
	Reference   string      // of the last payment that has one and stands
	PaidAt      *int64      // when the last payment came, of what is paid; nil: it is not, or notes took all that was open
	VoidReason  string
	Reason      string // why a credit note was made
	Digested    []byte // as stored, see assembly.Digest; nil of a draft
}

// Series is the series that the invoice gets its number from.
func (i *Invoice) Series() string {
	if i.TestClock == "" {
		return SeriesLive
	}
	return SeriesTest
}

// Extra reports whether it is an invoice of charges and corrections that came when billing was over, and
// no other invoice could take them. It is of no period: both ends are the end of the chain.
func (i *Invoice) Extra() bool { return i.Kind == KindPeriod && i.N < 0 }

// Corrected names a line of usage that is corrected, by its meter and its invoice's id.
type Corrected struct {
	Meter   string `json:"meter"`
	Invoice string `json:"invoice"`
}

// Totals are sums of an invoice, in minor units.
type Totals struct {
	SubtotalMinor int64 // Σ lines
	TaxMinor      int64
	TotalMinor    int64
}

// Line is one line of an invoice.
type Line struct {
	N           int
	Kind        string
	Meter       string // "" if the line is of no meter
	Description string
	From, To    int64
	Quantity    int64
	Included    int64
	PlanVersion int
	Tiers       []TierLine
	Priced             // of a line of usage and of a correction
	Applied     string // AppliedMinimum or AppliedMaximum of the price, if the amount is that one
	AmountMinor int64
	OfInvoice   string  // the invoice that is corrected; of unused that goes on, the void one that had it
	Before      *Before // of a correction; nil on other lines, also on that of a note on a correction
	OfLine      int     // of a credit note: the line that is credited
	Level       LineLevel
	Part        *Part  // of a whole period; nil: all of it, or the line is of no time
	WholeMinor  *int64 // what the whole period costs, see client.Line; nil: no price of a whole period made the amount

	// BaseInvoice and BaseLine name the line of base in advance that a line unused gives back. They are
	// empty on other lines.
	BaseInvoice string
	BaseLine    int
}

// Before is what was billed of a line before a correction of it. The correction's amount is what all units cost, Quantity and the
// correction's own, or CreditedMinor if that is more, less AmountMinor.
type Before struct {
	Quantity      int64 `json:"quantity"`       // of the line, with all corrections so far
	AmountMinor   int64 `json:"amount_minor"`   // what these came to
	CreditedMinor int64 `json:"credited_minor"` // what credit notes took of that
}

// LineLevel is what a line of a level meter's usage bills: which level of the period, see
// plans.Price.LevelBy, and that level with 6 digits after the point. Both are empty on other lines.
type LineLevel struct{ By, Exact string }

// Part is the part [From, To) of a whole period [OfFrom, OfTo), µs.
type Part struct {
	From   int64 `json:"from"`
	To     int64 `json:"to"`
	OfFrom int64 `json:"of_from"`
	OfTo   int64 `json:"of_to"`
}

// What holds the amount of a line of usage.
const (
	AppliedMinimum = "minimum"
	AppliedMaximum = "maximum"
)

// Priced is what the units of a line cost beyond the included ones, in major units, as the price
// says it. It is empty where tiers price the line.
type Priced struct {
	UnitPrice    string // of model per_unit
	PackageSize  int64  // of model package
	PackagePrice string
}

// Corrects is the id of the invoice that the line corrects or credits, "" for none.
func (l *Line) Corrects() string {
	if l.Kind == LineUnused {
		return ""
	}
	return l.OfInvoice
}

// TierLine is what one tier adds to a line.
type TierLine = client.TierLine

// Units is a decimal number of units of a tier.
type Units = client.Units

// PricedAs reports whether two lines say the same of how their amounts come about.
func (l *Line) PricedAs(other *Line) bool {
	return l.Priced == other.Priced && l.Level == other.Level && l.Applied == other.Applied && l.Included == other.Included &&
		slices.EqualFunc(l.Tiers, other.Tiers, sameTier) &&
		alike(l.Part, other.Part) && alike(l.WholeMinor, other.WholeMinor) && alike(l.Before, other.Before)
}

func sameTier(t, other TierLine) bool {
	return t.Quantity == other.Quantity && t.Amount == other.Amount && t.UnitPrice == other.UnitPrice &&
		alike(t.UpTo, other.UpTo) && alike(t.FlatPrice, other.FlatPrice)
}

func alike[T comparable](a, b *T) bool { return a == b || a != nil && b != nil && *a == *b }

// Tax is one tax of an invoice.
type Tax struct {
	Name      string `json:"name"`
	Percent   string `json:"percent"`
	Inclusive bool   `json:"inclusive"`
	BaseMinor int64  `json:"base_minor"`
	TaxMinor  int64  `json:"tax_minor"`
	Note      string `json:"note,omitempty"` // for people
}
