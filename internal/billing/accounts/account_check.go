package accounts

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"quotad/internal/billing"
	"quotad/internal/billing/rating"
	"quotad/internal/plans"
	"quotad/internal/quota/model"
)

// Maximum sizes in an account or a seller: characters in a line, lines of an address and the like, taxes, and
// days until an invoice is due.
const (
	maxText    = 200
	maxLines   = 20
	maxTaxes   = 10
	maxDueDays = 365
)

// checked collects the errors in an input.
type checked struct{ bad model.FieldErrors }

func (c *checked) add(field, format string, args ...any) {
	c.bad = append(c.bad, model.FieldError{Field: field, Detail: fmt.Sprintf(format, args...)})
}

// text checks an optional line of text for people.
func (c *checked) text(field, value string) {
	if !utf8.ValidString(value) || utf8.RuneCountInString(value) > maxText {
		c.add(field, "must be at most %d characters of UTF-8", maxText)
		return
	}
	if !plans.PlainText(value) {
		c.add(field, "must not have control characters")
	}
}

// name trims white space from both ends of a text that must be visible, and checks the text. A text may be
// empty unless it is required.
func (c *checked) name(field string, value *string, required bool) {
	sent := *value
	*value = strings.TrimSpace(sent)
	c.text(field, *value)
	switch {
	case sent == "" && required:
		c.add(field, "is required")
	case sent != "" && !plans.Says(*value):
		c.add(field, plans.SeenRule)
	}
}

func (c *checked) lines(field string, lines []string) {
	if len(lines) > maxLines {
		c.add(field, "must have at most %d lines", maxLines)
		return
	}
	for i, line := range lines {
		c.text(fmt.Sprintf("%s[%d]", field, i), line)
	}
}

// address trims white space from both ends of each line of an address and checks the lines. A line may be
// empty.
func (c *checked) address(field string, lines *[]string) {
	*lines = slices.Clone(*lines)
	for i := range *lines {
		(*lines)[i] = strings.TrimSpace((*lines)[i])
	}
	c.lines(field, *lines)
}

func (c *checked) instant(field string, at *int64) {
	if at != nil && plans.CheckTestClock("any", *at) != nil {
		c.add(field, plans.ClockRule)
	}
}

// check normalizes the texts of an account for storage. It returns the errors that can be found without the
// database.
func (in *AccountInput) check() model.FieldErrors {
	var c checked
	c.instant("starts_at", in.StartsAt)
	c.instant("trial_ends_at", in.TrialEndsAt)
	c.instant("ends_at", in.EndsAt)
	if in.AfterEnd != nil && *in.AfterEnd != billing.Block && *in.AfterEnd != billing.Free {
		c.add("after_end", "must be %q or %q, or left out: then it stays as it is", billing.Block, billing.Free)
	}
	if !plans.ValidKey(in.Seller) {
		c.add("seller", plans.KeyRule)
	}
	c.name("buyer.name", &in.Buyer.Name, false)
	c.address("buyer.address", &in.Buyer.Address)
	c.text("buyer.country", in.Buyer.Country)
	c.text("buyer.tax_id", in.Buyer.TaxID)
	c.text("order_reference", in.OrderReference)
	c.lines("notes", in.Notes)
	if in.DueDays < 0 || in.DueDays > maxDueDays {
		c.add("due_days", "must be between 0 and %d", maxDueDays)
	}
	c.taxes(in)
	return c.bad
}

func (c *checked) taxes(in *AccountInput) {
	if len(in.Taxes) > maxTaxes {
		c.add("taxes", "must be at most %d", maxTaxes)
		return
	}
	rates := make([]rating.Tax, len(in.Taxes))
	wrong := false
	in.Taxes = slices.Clone(in.Taxes)
	for i := range in.Taxes {
		t := &in.Taxes[i]
		c.name(fmt.Sprintf("taxes[%d].name", i), &t.Name, true)
		c.text(fmt.Sprintf("taxes[%d].note", i), t.Note)
		if !rating.ValidPercent(t.Percent) {
			c.add(fmt.Sprintf("taxes[%d].percent", i), rating.PercentRule)
			wrong = true
		}
		rates[i] = rating.Tax{Name: t.Name, Percent: t.Percent, Inclusive: t.Inclusive}
	}
	if _, err := rating.NewTaxes(rates); !wrong && err != nil {
		if errors.Is(err, rating.ErrMixedTaxes) {
			c.add("taxes", "must be all inclusive or all exclusive: a customer has one kind")
			return
		}
		c.add("taxes", "%s", err.Error())
	}
}

func fault(field, detail string) error {
	return model.FieldErrors{{Field: field, Detail: detail}}
}
