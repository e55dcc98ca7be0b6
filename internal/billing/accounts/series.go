package accounts

import (
	"context"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"golang.org/x/text/unicode/norm"

	"quotad/internal/billing"
	"quotad/internal/plans"
	"quotad/internal/plans/store"
)

// A seller has two series of numbers for each prefix, because customers on test clocks have a separate
// series. The next number of the seller's current prefix is in the seller's row, and those of former prefixes
// are in seller_numbers. If the seller takes a former prefix again, its numbers continue.

// maxPrefix is the maximum length of a number prefix, in bytes.
const maxPrefix = 20

// prefixes trims white space from both ends of a seller's prefixes. It checks each prefix alone and then both
// together.
func (c *checked) prefixes(in *SellerInput) {
	const asTest = "must not begin with TEST, in any case, without a letter after it: so do the numbers of customers on test clocks, with " + billing.TestPrefix
	for _, p := range []struct {
		field  string
		prefix *string
	}{{"prefix", &in.Prefix}, {"credit_note_prefix", &in.CreditNotePrefix}} {
		c.name(p.field, p.prefix, false)
		if len(*p.prefix) > maxPrefix {
			c.add(p.field, "must be at most %d bytes", maxPrefix)
		}
		if looksTest(*p.prefix) {
			c.add(p.field, asTest)
		}
	}
	if in.CreditNotePrefix != "" && sameNumber(in.Prefix, in.CreditNotePrefix) {
		c.add("credit_note_prefix", "must be such that no credit note could have the number of an invoice: beside the prefix %q it could", in.Prefix)
	}
}

// looksTest reports whether the numbers of a prefix look like numbers of the test series: the prefix begins
// with TEST in any case, and no letter follows. Invisible characters are ignored, and letters of another
// width or style count as the same letters.
func looksTest(prefix string) bool {
	shown := strings.Map(func(r rune) rune {
		if !plans.IsSeen(r) && !unicode.IsSpace(r) {
			return -1
		}
		return r
	}, norm.NFKC.String(prefix))
	rest, begins := strings.CutPrefix(strings.ToUpper(strings.TrimSpace(shown)), "TEST")
	next, _ := utf8.DecodeRuneInString(rest)
	return begins && !unicode.IsLetter(next)
}

// sameNumber reports whether the series of two prefixes could produce the same number. A number is a prefix
// and an integer above 0.
func sameNumber(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	rest, begins := strings.CutPrefix(b, a)
	return begins && strings.Trim(rest, "0123456789") == "" && !strings.HasPrefix(rest, "0")
}

// series is one of a seller's number series.
type series struct{ Name, Prefix string }

// seriesOf returns both series of a prefix.
func seriesOf(prefix string) [2]series {
	return [2]series{
		{billing.SeriesLive, billing.PrefixIn(billing.SeriesLive, prefix)}, {billing.SeriesTest, billing.PrefixIn(billing.SeriesTest, prefix)},
	}
}

// givenSeries selects the series in which a seller has assigned numbers.
const givenSeries = `
	SELECT w.series, w.prefix FROM sellers s,
		LATERAL (VALUES ('live', s.prefix, s.next_number), ('test', 'TEST-' || s.prefix, s.next_test_number)) AS w (series, prefix, next)
	WHERE s.key = $1 AND w.next > 1
	UNION SELECT series, prefix FROM seller_numbers WHERE seller = $1 AND next_number > 1`

// checkSeries rejects prefixes with which two series of the seller could produce the same number. Former
// series with assigned numbers count, too. The seller's row is locked. The error is model.FieldErrors.
func checkSeries(ctx context.Context, w *store.Writing, old *Seller, in *SellerInput) error {
	rows, _ := w.Query(ctx, givenSeries, in.Key)
	given, err := pgx.CollectRows(rows, pgx.RowToStructByPos[series])
	if err != nil {
		return err
	}
	type place struct{ field, prefix string }
	var next []place
	if in.Prefix != old.Prefix {
		next = append(next, place{"prefix", in.Prefix})
	}
	if in.CreditNotePrefix != old.CreditNotePrefix && in.CreditNotePrefix != "" {
		next = append(next, place{"credit_note_prefix", in.CreditNotePrefix})
	}
	invoices, notes := seriesOf(in.Prefix), seriesOf(in.CreditNotePrefix)
	all := append(given, invoices[:]...)
	if in.CreditNotePrefix != "" {
		all = append(all, notes[:]...)
	}
	var c checked
	for _, p := range next {
		for _, s := range seriesOf(p.prefix) {
			for _, other := range all {
				if s != other && sameNumber(s.Prefix, other.Prefix) && len(c.bad) == 0 {
					c.add(p.field, "must be another one: it could give a number that the seller's series with the prefix %q gives or gave, such as %s", other.Prefix,
						shared(s.Prefix, other.Prefix))
				}
			}
		}
	}
	if len(c.bad) > 0 {
		return c.bad
	}
	return nil
}

// shared returns a sample number that the series of both prefixes could produce.
func shared(a, b string) string {
	if len(a) < len(b) {
		a = b
	}
	return a + "1"
}
