package assembly

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"quotad/internal/billing"
)

// Digest returns the SHA-256 of the immutable contents of a finalized invoice, to detect changes. The digest
// omits contents that may change: status, instant, amount and reference of payments, void reason, the amounts
// of credit notes, and the customer's key, which an erasure removes. It omits the fields that only drafts
// need: the finalization time, days to pay, held and waiting.
//
// It also omits redundant contents: the seller's prefix, which begins the number, the target of an `unused`
// line, and the number of the invoice Of, whose id is included.
//
// The hash input is the JSON of digestForm: the fields in their order, without spaces, instants in µs, an
// empty list as []. The form has types of its own, so a later field of invoices changes no digest. The error
// reports an invoice that cannot be encoded.
func Digest(inv *billing.Invoice) ([]byte, error) {
	form := digestForm{
		ID: inv.ID, Number: inv.Number, Kind: inv.Kind, Customer: inv.Customer, Currency: inv.Currency,
		Chain: inv.Chain, N: inv.N, PeriodStart: inv.PeriodStart, PeriodEnd: inv.PeriodEnd,
		PlanID: inv.PlanID, PriceVersion: inv.PriceVersion, Of: inv.Of,
		Lines: make([]digestLine, len(inv.Lines)), Taxes: make([]digestTax, len(inv.Taxes)),
		Subtotal: inv.SubtotalMinor, Tax: inv.TaxMinor, Total: inv.TotalMinor,
		Credits: inv.CreditsMinor, AmountDue: inv.AmountDueMinor,
		Seller:      digestParty{Key: inv.Seller.Key, Name: inv.Seller.Name, Address: list(inv.Seller.Address), TaxID: inv.Seller.TaxID},
		Buyer:       digestParty{Name: inv.Buyer.Name, Address: list(inv.Buyer.Address), Country: inv.Buyer.Country, TaxID: inv.Buyer.TaxID},
		MadeAt:      inv.MadeAt,
		FinalizedAt: inv.FinalizedAt, DueAt: inv.DueAt, Zone: inv.Zone, Reason: inv.Reason, Paper: paperOf(inv),
	}
	for i := range inv.Lines {
		form.Lines[i] = digestOf(&inv.Lines[i])
	}
	for i, t := range inv.Taxes {
		form.Taxes[i] = digestTax{t.Name, t.Percent, t.Inclusive, t.BaseMinor, t.TaxMinor}
	}
	raw, err := json.Marshal(form)
	if err != nil {
		return nil, fmt.Errorf("the digest of invoice %s: %w", inv.ID, err)
	}
	sum := sha256.Sum256(raw)
	return sum[:], nil
}

// digestOf returns the form of a line.
func digestOf(l *billing.Line) digestLine {
	line := digestLine{
		l.N, l.Kind, l.Meter, l.Description, l.From, l.To, l.Quantity, l.Included,
		l.PlanVersion, make([]digestTier, len(l.Tiers)), l.AmountMinor, l.OfInvoice, l.OfLine, (*digestBefore)(l.Before),
		digestPrice{l.UnitPrice, l.PackageSize, l.PackagePrice, l.Applied},
		digestLevel{l.Level.By, l.Level.Exact},
		(*digestPart)(l.Part), l.WholeMinor,
	}
	for i, t := range l.Tiers {
		line.Tiers[i] = digestTier{t.UpTo, string(t.Quantity), t.Amount, t.UnitPrice, t.FlatPrice}
	}
	return line
}

// paperOf returns the fields of the digest that only documents show.
func paperOf(inv *billing.Invoice) digestPaper {
	s := &inv.Seller
	p := digestPaper{
		Country: s.Country, Registration: s.Registration, Email: s.Email, Payment: list(s.Payment), Footer: list(s.Footer),
		OrderReference: inv.OrderReference, Notes: list(inv.Notes), TaxNotes: make([]string, len(inv.Taxes)),
	}
	for i, t := range inv.Taxes {
		p.TaxNotes[i] = t.Note
	}
	return p
}

func list(of []string) []string {
	if of == nil {
		return []string{}
	}
	return of
}

// digestForm and its types must never change.
type digestForm struct {
	ID, Number, Kind       string
	Customer               int64
	Currency               string
	Chain, N               int
	PeriodStart, PeriodEnd int64
	PlanID                 int32
	PriceVersion           int
	Of                     string
	Lines                  []digestLine
	Taxes                  []digestTax
	Subtotal, Tax, Total   int64
	Credits, AmountDue     int64
	Seller, Buyer          digestParty
	MadeAt                 int64
	FinalizedAt, DueAt     *int64
	Zone, Reason           string
	Paper                  digestPaper
}

type digestLine struct {
	N                  int
	Kind, Meter        string
	Description        string
	From, To           int64
	Quantity, Included int64
	PlanVersion        int
	Tiers              []digestTier
	Amount             int64
	OfInvoice          string
	OfLine             int
	Before             *digestBefore
	Price              digestPrice
	Level              digestLevel
	Part               *digestPart
	WholeMinor         *int64
}

type digestBefore struct{ Quantity, AmountMinor, CreditedMinor int64 }

type digestPart struct{ From, To, OfFrom, OfTo int64 }

type digestLevel struct{ By, Exact string }

type digestTier struct {
	UpTo      *int64
	Quantity  string
	Amount    string
	UnitPrice string
	FlatPrice *string
}

type digestPrice struct {
	UnitPrice    string
	PackageSize  int64
	PackagePrice string
	Applied      string
}

type digestPaper struct {
	Country, Registration, Email string // the seller's
	Payment, Footer              []string
	OrderReference               string
	Notes                        []string
	TaxNotes                     []string // in the order of the taxes
}

type digestTax struct {
	Name, Percent string
	Inclusive     bool
	Base, Tax     int64
}

type digestParty struct {
	Key, Name string
	Address   []string
	Country   string
	TaxID     string
}
