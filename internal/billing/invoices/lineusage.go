package invoices

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"quotad/internal/billing"
	"quotad/internal/billing/rating"
	"quotad/internal/calendar"
	"quotad/internal/plans"
	"quotad/internal/plans/store"
	"quotad/internal/postgres"
	"quotad/internal/quota/locked"
	"quotad/internal/quota/usage"
)

// LineUsage is a page of the usage that adds up to the quantity of a line: first hours, then adjustments.
type LineUsage struct {
	Hours       []usage.Hour
	Adjustments []usage.Adjustment
	Next        string // the cursor of the next page; "" at the end

	// Days contains the starts of the days in a level meter's line, µs, in the customer's timezone. The first
	// and the last day are cut at the ends of the line. Levels contains the level of each day.
	Days   []int64
	Levels []LevelPoint
}

// LevelPoint contains the last, the highest and the average level in a time span.
type LevelPoint struct {
	Last, Peak int64
	Average    rating.Level
}

// Levels returns the levels in the spans between consecutive starts, up to now, from one snapshot. Instants
// are µs. A span that begins after now has the present level.
func (is *Invoices) Levels(ctx context.Context, customer int64, meter int32, starts []int64, now int64) (points []LevelPoint, err error) {
	err = is.accounts.Snapshot(ctx, func(ctx context.Context, tx pgx.Tx) error {
		points, err = levelPoints(ctx, tx, customer, meter, starts, now)
		return err
	})
	return points, err
}

// levelPoints returns the levels of a level meter in the spans between consecutive starts, up to now.
func levelPoints(ctx context.Context, q usage.Querier, customer int64, meter int32, starts []int64, now int64) ([]LevelPoint, error) {
	spans := make([]usage.Span, len(starts)-1)
	for i := range spans {
		spans[i] = usage.Span{Customer: customer, Meter: meter, Start: starts[i], End: max(starts[i]+1, min(starts[i+1], now+1))}
	}
	held, err := usage.Levels(ctx, q, spans)
	points := make([]LevelPoint, len(held))
	for i, h := range held {
		points[i] = LevelPoint{h.Last, h.Peak, rating.Average(h.Integral, spans[i].End-spans[i].Start)}
	}
	return points, err
}

// maxLineUsage is the maximum number of hours and adjustments on a page without a limit. A period has fewer
// hours.
const maxLineUsage = 100_000

// LineUsage returns the hours and adjustments that add up to a line's quantity. For a line without a
// quantity, the result is empty. A page without a limit contains at most 100,000 items. Errors:
// billing.ErrUnknownInvoice, billing.ErrUnknownLine, locked.ErrArchived, model.FieldErrors for a wrong page.
func (is *Invoices) LineUsage(ctx context.Context, id string, n int, page plans.Page) (out LineUsage, err error) {
	limit, after, err := store.OpenPage(page, pageLineUsage, func(position string) bool {
		_, ok := readPlace(position)
		return ok
	})
	if err != nil {
		return out, err
	}
	if page.Limit == 0 {
		limit = maxLineUsage
	}
	if !validID(id) {
		return out, billing.ErrUnknownInvoice
	}
	from, _ := readPlace(after)
	err = is.accounts.Snapshot(ctx, func(ctx context.Context, tx pgx.Tx) error {
		found, err := is.present(ctx, tx, readInvoice, id)
		if err != nil {
			return err
		}
		if len(found) == 0 {
			return billing.ErrUnknownInvoice
		}
		for i := range found[0].Lines {
			if line := &found[0].Lines[i]; line.N == n {
				out, err = lineUsage(ctx, tx, found[0], line, from, limit)
				return err
			}
		}
		return billing.ErrUnknownLine
	})
	return out, err
}

const pageLineUsage = "line usage"

// place is the position of a page's last item: an hour, or an adjustment, which follows all hours.
type place struct {
	adjustments bool
	hour, at    int64
	key         string // a UUID
}

func (p place) String() string {
	if !p.adjustments {
		return "h/" + strconv.FormatInt(p.hour, 10)
	}
	return fmt.Sprintf("a/%d/%d/%s", p.hour, p.at, p.key)
}

// readPlace parses a position in the list of hours. The empty text is the position before the first hour.
func readPlace(s string) (p place, ok bool) {
	parts := strings.Split(s, "/")
	var bad, worse error
	switch {
	case s == "":
		return place{hour: math.MinInt64}, true
	case len(parts) == 2 && parts[0] == "h":
		p.hour, bad = strconv.ParseInt(parts[1], 10, 64)
		return p, bad == nil
	case len(parts) == 4 && parts[0] == "a":
		p.adjustments, p.key = true, parts[3]
		p.hour, bad = strconv.ParseInt(parts[1], 10, 64)
		p.at, worse = strconv.ParseInt(parts[2], 10, 64)
		return p, bad == nil && worse == nil && validID(p.key)
	}
	return p, false
}

// countedAdjustments reads the adjustments stored with an invoice. It skips rows without a copy of the cost,
// because reconcile reports these.
const countedAdjustments = `
	SELECT hour, at, cost, reason, key FROM line_adjustments
	WHERE invoice_id = $1::uuid AND meter = $2 AND hour >= $3 AND hour < $4 AND cost IS NOT NULL
	  AND (hour, at, key) > ($5, $6, $7::uuid) ORDER BY hour, at, key LIMIT $8`

// lineUsage reads a page of the usage in a line's quantity. A usage line of a draft includes all adjustments
// of its period. Every other line includes the adjustments that are stored with it.
func lineUsage(ctx context.Context, q postgres.Querier, i *billing.Invoice, line *billing.Line, from place, limit int) (out LineUsage, err error) {
	if line.Kind != billing.LineUsage && line.Kind != billing.LineCorrection || i.Kind == billing.KindCreditNote {
		return out, nil
	}
	ids, err := store.MeterIDs(ctx, q, []string{line.Meter})
	if err != nil {
		return out, err
	}
	span := usage.Span{Customer: i.Customer, Meter: ids[line.Meter], Start: line.From, End: line.To}
	if line.Level.By != "" {
		zone, err := calendar.Location(i.Zone)
		if err != nil {
			return out, err
		}
		starts := []int64{line.From}
		for _, next := calendar.Day(line.From, zone); next < line.To; _, next = calendar.Day(next, zone) {
			starts = append(starts, next)
		}
		out.Days = starts
		out.Levels, err = levelPoints(ctx, q, i.Customer, span.Meter, append(starts, line.To), line.To)
		return out, err
	}
	if line.Kind == billing.LineUsage { // adjustments of a correction are billing's own copies
		if archive, err := usage.ReadArchive(ctx, q); err != nil || archive.Before > span.Start {
			return out, cmp.Or(err, locked.ErrArchived)
		}
	}
	if line.Kind == billing.LineUsage && !from.adjustments {
		if out.Hours, err = usage.Hours(ctx, q, span, from.hour, limit+1); err != nil || len(out.Hours) > limit {
			return out.end(limit), err
		}
	}
	if !from.adjustments {
		from.hour, from.at, from.key = math.MinInt64, math.MinInt64, zeroID
	}
	rest := limit - len(out.Hours) + 1
	if line.Kind == billing.LineUsage && i.Status == billing.StatusDraft {
		out.Adjustments, err = usage.Adjustments(ctx, q, span, from.hour, from.at, from.key, rest)
		return out.end(limit), err
	}
	rows, _ := q.Query(ctx, countedAdjustments, i.ID, span.Meter, span.Start, span.End, from.hour, from.at, from.key, rest)
	out.Adjustments, err = pgx.CollectRows(rows, usage.ScanAdjustment)
	return out.end(limit), err
}

// end removes the items beyond a page and sets the cursor of the next page.
func (u LineUsage) end(limit int) LineUsage {
	last := place{}
	switch over := len(u.Hours) + len(u.Adjustments) - limit; {
	case over <= 0:
		return u
	case len(u.Adjustments) == 0:
		u.Hours = u.Hours[:len(u.Hours)-over]
	default:
		u.Adjustments = u.Adjustments[:len(u.Adjustments)-over]
	}
	if n := len(u.Adjustments); n > 0 {
		a := &u.Adjustments[n-1]
		last = place{true, a.Hour, a.At, uuid(a.ID)}
	} else {
		last.hour = u.Hours[len(u.Hours)-1].Start
	}
	u.Next = store.Cursor(pageLineUsage, last.String())
	return u
}
