package billing

import (
	"slices"

	"quotad/client"
)

// Kinds of invoices.
const (
	KindPeriod     = "period"
	KindOpening    = "opening"
	KindCreditNote = "credit_note"
)

// Statuses of invoices.
const (
	StatusDraft     = "draft"
	StatusFinalized = "finalized"
	StatusPaid      = "paid"
	StatusVoid      = "void"
	StatusCredited  = "credited"

	// StatusOverdue selects finalized invoices with an open amount and a due_at in the past. No invoice has
	// this status itself.
	StatusOverdue = "overdue"
)

// Series of a seller's invoice numbers. Customers on test clocks have a series of their own, so tests use up
// no number of the live series.
const (
	SeriesLive = "live"
	SeriesTest = "test"
)

// TestPrefix precedes the seller's prefix in the invoice numbers of the test series.
const TestPrefix = "TEST-"

// PrefixIn returns the start of a series' numbers for a seller's prefix.
func PrefixIn(series, prefix string) string {
	if series == SeriesTest {
		return TestPrefix + prefix
	}
	return prefix
}

// Kinds of lines, in the order in which an invoice lists them. The base price of the next period follows the
// unused lines.
const (
	LineBase       = "base"
	LineUsage      = "usage"
	LineMinimum    = "minimum"
	LineUnused     = "unused"
	LineCorrection = "correction"
	LineCharge     = "charge"
)

// Invoice is an invoice of any kind and status. The amounts are provisional until the invoice is finalized;
// after that they never change.
type Invoice struct {
	ID           string // UUID; "" for an upcoming invoice
	Number       string // prefix and integer; "" for a draft
	Kind, Status string
	Customer     int64
	CustomerKey  string
	TestClock    string // key of the customer's test clock; "" if the customer uses PostgreSQL's time
	Zone         string // the customer's timezone, used for dates on documents; "" is UTC
	Currency     string
	Chain, N     int // the invoice's period
	PeriodStart  int64
	PeriodEnd    int64
	PlanID       int32
	PriceVersion int
	Of           string // id of the invoice that a credit note or reissue refers to
	OfNumber     string // number of the invoice Of

	Lines  []Line
	Taxes  []Tax
	Totals // sums of the lines and taxes

	CreditsMinor   int64 // credits applied
	AmountDueMinor int64 // TotalMinor − CreditsMinor, at least 0
	CreditedMinor  int64 // sum of the invoice's credit notes so far, taxes included, at least 0

	Seller         Seller
	Buyer          Buyer
	OrderReference string   // the buyer's
	Notes          []string // note lines of the account

	DueDays     int
	MadeAt      int64
	FinalizeAt  int64
	FinalizedAt *int64
	DueAt       *int64
	Overdue     bool        // an amount is open, and DueAt is over by the customer's clock
	Held        string      // the reason why the invoice stays a draft
	Waiting     []Corrected // corrections that are too large for the invoice, which waits until they are smaller
	Payments    []Payment   // the invoice's payments, in the order of N
	NotedMinor  int64       // the part of the open amount that credit notes credited
	Money       *NoteMoney  // set on credit notes only
	Reference   string      // reference of the last unreversed payment that has one
	PaidAt      *int64      // instant of the last payment of a paid invoice; nil if unpaid, or if notes took all that was open
	VoidReason  string
	Reason      string // the reason for a credit note
	Digested    []byte // as stored, see assembly.Digest; nil for a draft
}

// Series returns the series of the invoice's number.
func (i *Invoice) Series() string {
	if i.TestClock == "" {
		return SeriesLive
	}
	return SeriesTest
}

// Extra reports whether the invoice is an extra invoice. An extra invoice contains charges and corrections
// that arrived after billing was over, when no other invoice could contain them. It belongs to no period: its
// PeriodStart and PeriodEnd are both the end of the chain.
func (i *Invoice) Extra() bool { return i.Kind == KindPeriod && i.N < 0 }

// Corrected identifies a corrected usage line by its meter and the id of its invoice.
type Corrected struct {
	Meter   string `json:"meter"`
	Invoice string `json:"invoice"`
}

// Totals contains the sums of an invoice, in minor units.
type Totals struct {
	SubtotalMinor int64 // sum of the lines
	TaxMinor      int64
	TotalMinor    int64
}

// Line is one line of an invoice.
type Line struct {
	N           int
	Kind        string
	Meter       string // "" if the line has no meter
	Description string
	From, To    int64
	Quantity    int64
	Included    int64
	PlanVersion int
	Tiers       []TierLine
	Priced             // set on usage lines and corrections
	Applied     string // AppliedMinimum or AppliedMaximum if that bound of the price determined the amount
	AmountMinor int64
	OfInvoice   string  // the corrected invoice; on an unused line taken over from a void invoice, the void invoice
	Before      *Before // set on corrections; nil on other lines, also on the credit of a correction
	OfLine      int     // on a credit note, the number of the credited line
	Level       LineLevel
	Part        *Part  // the part of a whole period; nil if the line covers it all or has no period
	WholeMinor  *int64 // cost of the whole period, see client.Line; nil if the amount has another source

	// BaseInvoice and BaseLine identify the line whose base price, charged in advance, an unused line gives
	// back. Both are empty on other lines.
	BaseInvoice string
	BaseLine    int
}

// Before is the billed state of a line before a correction. The correction's amount is the cost of all units
// minus AmountMinor. All units are Quantity plus the correction's own. CreditedMinor replaces that cost if
// CreditedMinor is larger.
type Before struct {
	Quantity      int64 `json:"quantity"`       // quantity of the line, with all corrections so far
	AmountMinor   int64 `json:"amount_minor"`   // amount billed for that quantity
	CreditedMinor int64 `json:"credited_minor"` // the part of that amount that credit notes credited
}

// LineLevel is the level billed by a usage line of a level meter. By names the kind of level, see
// plans.Price.LevelBy, and Exact is the level with 6 decimal digits. Both are empty on other lines.
type LineLevel struct{ By, Exact string }

// Part is the part [From, To) of a whole period [OfFrom, OfTo), µs.
type Part struct {
	From   int64 `json:"from"`
	To     int64 `json:"to"`
	OfFrom int64 `json:"of_from"`
	OfTo   int64 `json:"of_to"`
}

// Bounds of a price. The amount of a usage line may be one of them.
const (
	AppliedMinimum = "minimum"
	AppliedMaximum = "maximum"
)

// Priced is the price of a line's units beyond the included units, in major units, as the price defines it.
// Priced is empty if tiers price the line.
type Priced struct {
	UnitPrice    string // for model per_unit
	PackageSize  int64  // for model package
	PackagePrice string
}

// Corrects returns the id of the invoice that the line corrects or credits, or "" if the line does neither.
func (l *Line) Corrects() string {
	if l.Kind == LineUnused {
		return ""
	}
	return l.OfInvoice
}

// TierLine is the share of one tier in a line.
type TierLine = client.TierLine

// Units is a decimal number of units of a tier.
type Units = client.Units

// PricedAs reports whether two lines have the same price details: prices, tiers, bounds and part of a period.
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
