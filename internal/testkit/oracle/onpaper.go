package oracle

import (
	"fmt"
	"html"
	"math/big"
	"regexp"
	"strings"
)

// A Computed is a line of a paper: the amount that the paper prints, and the one that a reader computes from the words beside it.
type Computed struct {
	Words          string
	Printed, Minor int64
	From           string // what the amount is computed from: "a price", "a price, less what was billed before", or "the amount" alone
}

var (
	paperTag   = regexp.MustCompile(`<[^>]*>`)
	paperMoney = `(?:[^0-9 ]|[A-Z]{3} )([0-9.,]+)`
	paperPart  = `(?: × ([0-9.,]+) of ([0-9.,]+) (?:hours|minutes|seconds)(?:, after the first ([0-9.,]+))?)?`

	paperUnits   = regexp.MustCompile(`^([0-9.,]+)(?: packages? of [0-9,]+)? × ` + paperMoney + `(?: and ` + paperMoney + ` flat)?` + paperPart + `$`)
	paperTiers   = regexp.MustCompile(`^Sum of the tiers` + paperPart + `$`)
	paperApplied = regexp.MustCompile(`^(?:Minimum|Maximum) of ` + paperMoney + paperPart + ` applied$`)
	paperBase    = regexp.MustCompile(`^` + paperMoney + paperPart + `$`)
	paperLeft    = regexp.MustCompile(`^No more than ` + paperMoney + ` was left of it$`)
	paperNoted   = regexp.MustCompile(`^At least ` + paperMoney + `, the sum of credit notes$`)
	paperBefore  = regexp.MustCompile(`^Less ` + paperMoney + ` billed before$`)
	paperMinimum = regexp.MustCompile(`^Minimum of ` + paperMoney + paperPart + `, less ` + paperMoney + ` of base price and usage$`)
)

// OnPaper computes each line of an invoice or credit note as HTML from its paper alone. exponent is the currency's.
func OnPaper(page string, exponent int) (lines []Computed, err error) {
	_, body, _ := strings.Cut(page, `<table class="lines">`)
	body, _, _ = strings.Cut(body, `<table class="totals">`)
	for _, row := range strings.Split(body, `<td class="no">`)[1:] {
		var words []string
		for _, word := range strings.Split(paperTag.ReplaceAllString(row, "\n"), "\n") {
			if word = strings.TrimSpace(html.UnescapeString(word)); word != "" {
				words = append(words, word)
			}
		}
		line := onPaper{exponent: exponent, sum: new(big.Rat), last: words[len(words)-1]}
		printed, ok := new(big.Rat).SetString(strings.NewReplacer(",", "", "−", "-").Replace(regexp.MustCompile(`[^0-9.,−]`).ReplaceAllString(line.last, "")))
		if !ok {
			return nil, fmt.Errorf("no amount in %q", words)
		}
		c := Computed{Words: strings.Join(words, " | "), Printed: round(printed.Mul(printed, tenTo(exponent)))}
		minor, priced := line.compute(words[2 : len(words)-1])
		switch {
		case line.before != nil:
			c.From, c.Minor = "a price, less what was billed before", minor
		case !priced:
			c.From, c.Minor = "the amount", c.Printed
		case c.Printed < 0:
			c.From, c.Minor = "a price", -minor
		default:
			c.From, c.Minor = "a price", minor
		}
		if (line.before != nil) != strings.HasPrefix(words[1], "Correction of ") {
			return nil, fmt.Errorf("a correction says what was billed before, and no other line does: %q", words)
		}
		lines = append(lines, c)
	}
	return lines, nil
}

// onPaper is a line that is being computed.
type onPaper struct {
	exponent int
	sum      *big.Rat // in minor units
	priced   bool
	last     string

	applied *int64 // the minimum or maximum that is the amount
	least   int64  // that credit notes took, of a correction
	before  *int64 // that was billed before a correction, in minor units
}

// compute follows the words of a line in their order.
func (p *onPaper) compute(words []string) (minor int64, priced bool) {
	var factor []string // of the sum of tiers, which come after it
	level := false
	for _, word := range words {
		level = level || strings.Contains(word, "held on the average") || strings.Contains(word, "that was held") || strings.Contains(word, "held at the end")
		switch {
		case paperUnits.MatchString(word):
			m := paperUnits.FindStringSubmatch(word)
			amount := new(big.Rat).Mul(paperNumber(m[1]), p.money(m[2]))
			if m[3] != "" {
				amount.Add(amount, p.money(m[3]))
			}
			p.sum.Add(p.sum, share(amount, m[4:]))
		case paperTiers.MatchString(word):
			factor = paperTiers.FindStringSubmatch(word)[1:]
		case paperApplied.MatchString(word):
			m := paperApplied.FindStringSubmatch(word)
			applied := steps(p.money(m[1]), m[2:])
			if level {
				applied = round(share(p.money(m[1]), m[2:]))
			}
			p.applied = &applied
		case paperNoted.MatchString(word):
			p.least = round(p.money(paperNoted.FindStringSubmatch(word)[1]))
		case paperBefore.MatchString(word):
			before := round(p.money(paperBefore.FindStringSubmatch(word)[1]))
			p.before = &before
		case paperMinimum.MatchString(word):
			m := paperMinimum.FindStringSubmatch(word)
			return steps(p.money(m[1]), m[2:5]) - round(p.money(m[5])), true
		case paperLeft.MatchString(word):
			return round(p.money(paperLeft.FindStringSubmatch(word)[1])), true
		case paperBase.MatchString(word) && word != p.last:
			m := paperBase.FindStringSubmatch(word)
			if m[2] == "" {
				continue // what a tier comes to
			}
			p.sum.SetInt64(steps(p.money(m[1]), m[2:]))
		default:
			continue
		}
		p.priced = true
	}
	if minor = round(share(p.sum, factor)); p.applied != nil {
		minor = *p.applied
	}
	if p.before != nil {
		minor = max(minor, p.least) - *p.before
	}
	return minor, p.priced
}

func (p *onPaper) money(text string) *big.Rat {
	return new(big.Rat).Mul(paperNumber(text), tenTo(p.exponent))
}

func paperNumber(text string) *big.Rat { return decimal(strings.ReplaceAll(text, ",", "")) }

// share is the part of an amount, not rounded. of has how much of how much; empty: all.
func share(amount *big.Rat, of []string) *big.Rat {
	if len(of) == 0 || of[0] == "" {
		return amount
	}
	amount = new(big.Rat).Mul(amount, paperNumber(of[0]))
	return amount.Quo(amount, paperNumber(of[1]))
}

// steps is the part of an amount that is rounded up to its start and up to its end.
func steps(amount *big.Rat, of []string) int64 {
	if of[0] == "" {
		return round(amount)
	}
	before := new(big.Rat)
	if of[2] != "" {
		before = paperNumber(of[2])
	}
	upTo := func(n *big.Rat) int64 {
		at := new(big.Rat).Mul(amount, n)
		return round(at.Quo(at, paperNumber(of[1])))
	}
	return upTo(new(big.Rat).Add(before, paperNumber(of[0]))) - upTo(before)
}
