package invoices

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"quotad/internal/billing"
	"quotad/internal/plans"
	"quotad/internal/plans/store"
	"quotad/internal/postgres"
	"quotad/internal/quota/usage"
)

// LineUsage is what the quantity of a line is the sum of: hours, and then adjustments. It is a
// page of them.
type LineUsage struct {
	Hours       []usage.Hour
	Adjustments []usage.Adjustment
	Next        string // the cursor of the next page, "" at the end
}

// maxLineUsage is how many hours and adjustments one page has where no limit is asked for. A
// period has fewer hours.
const maxLineUsage = 100_000

// LineUsage follows a line down to hours and adjustments, which add up to its quantity. Lines
// without a quantity have none. A page without a limit has at most 100,000 of both. Errors:
// billing.ErrUnknownInvoice, billing.ErrUnknownLine, model.FieldErrors for a wrong page.
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

// place is where a page ended: at an hour, or at an adjustment, after all hours.
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

// readPlace reads a place. The empty text is before all hours.
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

// A copy that is not there is for reconcile to tell.
const countedAdjustments = `
	SELECT hour, at, cost, reason, key FROM line_adjustments
	WHERE invoice_id = $1::uuid AND meter = $2 AND hour >= $3 AND hour < $4 AND cost IS NOT NULL
	  AND (hour, at, key) > ($5, $6, $7::uuid) ORDER BY hour, at, key LIMIT $8`

// lineUsage reads a page of what a line's quantity is the sum of. A draft's lines of usage count
// all adjustments of its period, others those that they are stored with.
func lineUsage(ctx context.Context, q postgres.Querier, i *billing.Invoice, line *billing.Line, from place, limit int) (out LineUsage, err error) {
	if line.Kind != billing.LineUsage && line.Kind != billing.LineCorrection || i.Kind == billing.KindCreditNote {
		return out, nil
	}
	ids, err := store.MeterIDs(ctx, q, []string{line.Meter})
	if err != nil {
		return out, err
	}
	span := usage.Span{Customer: i.Customer, Meter: ids[line.Meter], Start: line.From, End: line.To}
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

// end takes off what was read beyond a page, and says where the next one begins.
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
