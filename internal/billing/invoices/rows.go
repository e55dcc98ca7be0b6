package invoices

import (
	"context"
	"encoding/hex"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"quotad/internal/billing"
	"quotad/internal/postgres"
)

// Rows are written as one JSON array for each table, by column names, so that one statement writes the rows
// of many customers.

// invoiceRow is a row of invoices.
type invoiceRow struct {
	ID             string   `json:"id"`
	Customer       int64    `json:"customer_id"`
	Kind           string   `json:"kind"`
	Status         string   `json:"status"`
	Currency       string   `json:"currency"`
	Chain          int      `json:"chain"`
	N              int      `json:"n"`
	PeriodStart    int64    `json:"period_start"`
	PeriodEnd      int64    `json:"period_end"`
	PlanID         int32    `json:"plan_id"`
	PriceVersion   int      `json:"price_version"`
	Of             *string  `json:"of"`
	MadeAt         int64    `json:"made_at"`
	FinalizeAt     int64    `json:"finalize_at"`
	FinalizedAt    *int64   `json:"finalized_at"`
	DueAt          *int64   `json:"due_at"`
	Seller         *string  `json:"seller"`
	Series         string   `json:"series"`
	Number         *int64   `json:"number"`
	Prefix         *string  `json:"prefix"`
	SubtotalMinor  int64    `json:"subtotal_minor"`
	TaxMinor       int64    `json:"tax_minor"`
	TotalMinor     int64    `json:"total_minor"`
	CreditsMinor   int64    `json:"credits_minor"`
	AmountDueMinor int64    `json:"amount_due_minor"`
	Document       document `json:"document"`
	Digest         *string  `json:"digest"`
	Held           *string  `json:"held"`
}

// document contains the details of an invoice that have no column.
type document struct {
	Seller  billing.Seller `json:"seller"`
	Buyer   billing.Buyer  `json:"buyer"`
	Taxes   []billing.Tax  `json:"taxes"`
	DueDays int            `json:"due_days"`
	Zone    string         `json:"timezone,omitempty"`
	Reason  string         `json:"reason,omitempty"`

	OrderReference string   `json:"order_reference,omitempty"`
	Notes          []string `json:"notes,omitempty"`

	Waiting []billing.Corrected `json:"waiting,omitempty"`
}

// rowOf returns the row of an invoice. number is 0 for a draft.
func rowOf(i *billing.Invoice, number int64) invoiceRow {
	r := invoiceRow{
		ID: i.ID, Customer: i.Customer, Kind: i.Kind, Status: i.Status, Currency: i.Currency, Chain: i.Chain, N: i.N,
		PeriodStart: i.PeriodStart, PeriodEnd: i.PeriodEnd, PlanID: i.PlanID, PriceVersion: i.PriceVersion, Of: text(i.Of),
		MadeAt: i.MadeAt, FinalizeAt: i.FinalizeAt, FinalizedAt: i.FinalizedAt, DueAt: i.DueAt,
		SubtotalMinor: i.SubtotalMinor, TaxMinor: i.TaxMinor, TotalMinor: i.TotalMinor,
		CreditsMinor: i.CreditsMinor, AmountDueMinor: i.AmountDueMinor, Held: text(i.Held),
		Series:   billing.SeriesLive,
		Document: document{i.Seller, i.Buyer, i.Taxes, i.DueDays, i.Zone, i.Reason, i.OrderReference, i.Notes, i.Waiting},
	}
	if number > 0 {
		digest := `\x` + hex.EncodeToString(i.Digested)
		r.Series, r.Number, r.Seller, r.Prefix, r.Digest = i.Series(), &number, &i.Seller.Key, &i.Seller.Prefix, &digest
	}
	return r
}

// text returns nil, which is NULL, for an empty text.
func text(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

const insertInvoices = `
	INSERT INTO invoices (id, customer_id, kind, status, currency, chain, n, period_start, period_end, plan_id, price_version, "of",
		made_at, finalize_at, finalized_at, due_at, seller, number, prefix, subtotal_minor, tax_minor, total_minor,
		credits_minor, amount_due_minor, document, digest, held)
	SELECT id, customer_id, kind, status, currency, chain, n, period_start, period_end, plan_id, price_version, "of",
		made_at, finalize_at, finalized_at, due_at, seller, number, prefix, subtotal_minor, tax_minor, total_minor,
		credits_minor, amount_due_minor, document, digest, held
	FROM jsonb_populate_recordset(NULL::invoices, $1)`

// updateInvoices writes all columns that change when a draft is finalized or held.
const updateInvoices = `
	UPDATE invoices i SET status = r.status, finalized_at = r.finalized_at, due_at = r.due_at, seller = r.seller, series = r.series, number = r.number,
		prefix = r.prefix, subtotal_minor = r.subtotal_minor, tax_minor = r.tax_minor, total_minor = r.total_minor,
		credits_minor = r.credits_minor, amount_due_minor = r.amount_due_minor, document = r.document, digest = r.digest, held = r.held,
		finalize_at = r.finalize_at
	FROM jsonb_populate_recordset(NULL::invoices, $1) r WHERE i.id = r.id`

// lineRow is a row of invoice_lines.
type lineRow struct {
	Invoice     string             `json:"invoice_id"`
	N           int                `json:"n"`
	Kind        string             `json:"kind"`
	Meter       *string            `json:"meter"`
	Description string             `json:"description"`
	From        int64              `json:"from_at"`
	To          int64              `json:"to_at"`
	Quantity    int64              `json:"quantity"`
	Included    int64              `json:"included"`
	PlanVersion int                `json:"plan_version"`
	Tiers       []billing.TierLine `json:"tiers"`
	AmountMinor int64              `json:"amount_minor"`
	OfInvoice   *string            `json:"of_invoice"`
	OfLine      *int               `json:"of_line"`
	Before      *billing.Before    `json:"billed_before"`

	UnitPrice    *string `json:"unit_price"`
	PackageSize  *int64  `json:"package_size"`
	PackagePrice *string `json:"package_price"`
	Applied      *string `json:"applied"`
	LevelBy      *string `json:"level_by"`
	Level        *string `json:"level"`

	BaseInvoice *string `json:"base_invoice"`
	BaseLine    *int    `json:"base_line"`

	Part       *billing.Part `json:"part"`
	WholeMinor *int64        `json:"whole_minor"`
}

const insertLines = `
	INSERT INTO invoice_lines (invoice_id, n, kind, meter, description, from_at, to_at, quantity, included, plan_version, tiers,
		amount_minor, of_invoice, of_line, billed_before, unit_price, package_size, package_price, applied, base_invoice, base_line, level_by, level,
		part, whole_minor)
	SELECT invoice_id, n, kind, meter, description, from_at, to_at, quantity, included, plan_version, tiers,
		amount_minor, of_invoice, of_line, billed_before, unit_price, package_size, package_price, applied, base_invoice, base_line, level_by, level,
		part, whole_minor
	FROM jsonb_populate_recordset(NULL::invoice_lines, $1)`

const deleteLines = `DELETE FROM invoice_lines WHERE invoice_id = ANY ($1::uuid[])`

// lineRows returns the rows of an invoice's lines.
func lineRows(i *billing.Invoice) []lineRow {
	rows := make([]lineRow, len(i.Lines))
	for n := range i.Lines {
		l := &i.Lines[n]
		rows[n] = lineRow{
			Invoice: i.ID, N: l.N, Kind: l.Kind, Meter: text(l.Meter), Description: l.Description, From: l.From, To: l.To,
			Quantity: l.Quantity, Included: l.Included, PlanVersion: l.PlanVersion, Tiers: l.Tiers, AmountMinor: l.AmountMinor,
			OfInvoice: text(l.OfInvoice), Before: l.Before, UnitPrice: text(l.UnitPrice), PackagePrice: text(l.PackagePrice), Applied: text(l.Applied),
			LevelBy: text(l.Level.By), Level: text(l.Level.Exact), Part: l.Part, WholeMinor: l.WholeMinor,
		}
		if l.PackageSize > 0 {
			rows[n].PackageSize = &l.PackageSize
		}
		if rows[n].Tiers == nil {
			rows[n].Tiers = []billing.TierLine{}
		}
		if l.BaseInvoice != "" {
			rows[n].BaseInvoice, rows[n].BaseLine = &l.BaseInvoice, &l.BaseLine
		}
		if l.OfLine > 0 {
			rows[n].OfLine = &l.OfLine
		}
	}
	return rows
}

// countedRow is a row of line_adjustments.
type countedRow struct {
	Invoice  string `json:"invoice_id"`
	Customer int64  `json:"customer"`
	Meter    int32  `json:"meter"`
	Hour     int64  `json:"hour"`
	Key      string `json:"key"`
	Cost     int64  `json:"cost"`
	At       int64  `json:"at"`
	Reason   string `json:"reason"`
}

const insertCounted = `
	INSERT INTO line_adjustments (invoice_id, customer, meter, hour, key, cost, at, reason)
	SELECT invoice_id, customer, meter, hour, key, cost, at, reason FROM jsonb_populate_recordset(NULL::line_adjustments, $1)`

// usageRows returns the rows of the adjustments that the invoice's usage lines include.
func (t *Task) usageRows() (rows []countedRow) {
	for n := range t.Result.Invoice.Lines {
		if l := &t.Result.Invoice.Lines[n]; l.Kind == billing.LineUsage {
			rows = append(rows, t.rowsOf(countedBy{meter: l.Meter})...)
		}
	}
	return rows
}

// correctionRows returns the rows of the adjustments that the invoice includes as corrections. A correction
// of 0 has rows but no line.
func (t *Task) correctionRows() (rows []countedRow) {
	for i := range t.Result.Corrected {
		c := &t.Result.Corrected[i]
		rows = append(rows, t.rowsOf(countedBy{c.Meter, c.OfInvoice})...)
	}
	return rows
}

func (t *Task) rowsOf(key countedBy) (rows []countedRow) {
	i, by := &t.Result.Invoice, t.counted[key]
	for _, a := range by.adj {
		rows = append(rows, countedRow{i.ID, i.Customer, by.meter, a.Hour, hex.EncodeToString(a.ID[:]), a.Cost, a.At, a.Reason})
	}
	return rows
}

const invoiceColumns = `
	i.id::text, coalesce(i.prefix || i.number, ''), i.kind, i.status, i.customer_id, c.key, coalesce(t.key, ''), i.currency, i.chain, i.n,
	i.period_start, i.period_end, i.plan_id, i.price_version, coalesce(i.of::text, ''),
	coalesce((SELECT o.prefix || o.number FROM invoices o WHERE o.id = i.of), ''),
	coalesce((SELECT -sum(o.total_minor) FROM invoices o WHERE o.of = i.id AND o.kind = 'credit_note'), 0)::bigint,
	i.subtotal_minor, i.tax_minor, i.total_minor, i.credits_minor, i.amount_due_minor, i.document,
	i.made_at, i.finalize_at, i.finalized_at, i.due_at, coalesce(i.held, ''), coalesce(i.void_reason, ''), i.digest,
	(SELECT jsonb_agg(to_jsonb(y) ORDER BY y.n) FROM (
		SELECT n, kind, amount_minor, reference, at, reversed_at, reversal_reason AS reason FROM payments p WHERE p.invoice_id = i.id) y),
	coalesce((SELECT sum(m.open_minor) FROM note_money m WHERE m.invoice_id = i.id), 0)::bigint,
	(SELECT to_jsonb(m) FROM note_money m WHERE m.note_id = i.id),
	i.status = 'finalized' AND i.due_at <= coalesce(t.now, (extract(epoch FROM statement_timestamp()) * 1000000)::bigint)
	FROM invoices i JOIN customers c ON c.id = i.customer_id LEFT JOIN test_clocks t ON t.id = c.test_clock_id `

func scanInvoice(row pgx.CollectableRow) (*billing.Invoice, error) {
	i := new(billing.Invoice)
	var raw, paid, money []byte
	var overdue *bool
	err := row.Scan(&i.ID, &i.Number, &i.Kind, &i.Status, &i.Customer, &i.CustomerKey, &i.TestClock, &i.Currency, &i.Chain, &i.N,
		&i.PeriodStart, &i.PeriodEnd, &i.PlanID, &i.PriceVersion, &i.Of, &i.OfNumber, &i.CreditedMinor,
		&i.SubtotalMinor, &i.TaxMinor, &i.TotalMinor, &i.CreditsMinor, &i.AmountDueMinor, &raw,
		&i.MadeAt, &i.FinalizeAt, &i.FinalizedAt, &i.DueAt, &i.Held, &i.VoidReason, &i.Digested, &paid, &i.NotedMinor, &money, &overdue)
	if err != nil {
		return nil, err
	}
	var d document
	var payments []billing.Payment
	err = json.Unmarshal(raw, &d)
	if err == nil && paid != nil {
		err = json.Unmarshal(paid, &payments)
	}
	if err == nil && money != nil {
		i.Money = new(billing.NoteMoney)
		err = json.Unmarshal(money, i.Money)
	}
	i.SetPayments(payments)
	i.Overdue = overdue != nil && *overdue && i.OpenMinor() > 0
	i.Seller, i.Buyer, i.Taxes, i.DueDays, i.Zone, i.Reason, i.Waiting = d.Seller, d.Buyer, d.Taxes, d.DueDays, d.Zone, d.Reason, d.Waiting
	i.OrderReference, i.Notes = d.OrderReference, d.Notes
	return i, err
}

const readLines = `
	SELECT invoice_id::text, n, kind, coalesce(meter, ''), description, from_at, to_at, quantity, included, plan_version, tiers,
		amount_minor, coalesce(of_invoice::text, ''), coalesce(of_line, 0), billed_before,
		coalesce(unit_price, ''), coalesce(package_size, 0), coalesce(package_price, ''), coalesce(applied, ''),
		coalesce(base_invoice::text, ''), coalesce(base_line, 0), coalesce(level_by, ''), coalesce(level, ''), part, whole_minor
	FROM invoice_lines WHERE invoice_id = ANY ($1::uuid[]) ORDER BY invoice_id, n`

// invoicesOf reads invoices with their lines. statement must begin with SELECT and invoiceColumns.
func invoicesOf(ctx context.Context, q postgres.Querier, statement string, args ...any) ([]*billing.Invoice, error) {
	rows, _ := q.Query(ctx, statement, args...)
	all, err := pgx.CollectRows(rows, scanInvoice)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	byID, ids := make(map[string]*billing.Invoice, len(all)), make([]string, len(all))
	for n, i := range all {
		byID[i.ID], ids[n] = i, i.ID
	}
	var id string
	var l billing.Line
	var tiers []byte
	err = postgres.ForEach(ctx, q, []any{
		&id, &l.N, &l.Kind, &l.Meter, &l.Description, &l.From, &l.To, &l.Quantity, &l.Included, &l.PlanVersion, &tiers,
		&l.AmountMinor, &l.OfInvoice, &l.OfLine, &l.Before,
		&l.UnitPrice, &l.PackageSize, &l.PackagePrice, &l.Applied, &l.BaseInvoice, &l.BaseLine, &l.Level.By, &l.Level.Exact,
		&l.Part, &l.WholeMinor,
	}, func() error {
		l.Tiers = nil
		if len(tiers) > len("[]") {
			if err := json.Unmarshal(tiers, &l.Tiers); err != nil {
				return err
			}
		}
		byID[id].Lines = append(byID[id].Lines, l)
		l.Before, l.Part, l.WholeMinor = nil, nil, nil // each line has values of its own
		return nil
	}, readLines, ids)
	return all, err
}
