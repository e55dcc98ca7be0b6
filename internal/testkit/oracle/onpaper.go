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
	FromWords      bool // the words have a price; else the amount itself is the price
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
	paperMinimum = regexp.MustCompile(`^Minimum of ` + paperMoney + paperPart + `, less ` + paperMoney + ` of base price and usage$`)
)

// OnPaper computes each line of an invoice as HTML from its paper alone. exponent is the currency's. Corrections are left out: what
// they correct is on another paper.
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
		if strings.HasPrefix(words[1], "Correction of ") {
			continue
		}
		c := Computed{Words: strings.Join(words, " | "), Printed: round(printed.Mul(printed, tenTo(exponent)))}
		c.Minor, c.FromWords = line.compute(words[2 : len(words)-1])
		if !c.FromWords {
			c.Minor = c.Printed
		} else if c.Printed < 0 {
			c.Minor = -c.Minor
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
			if level {
				return round(share(p.money(m[1]), m[2:])), true
			}
			return steps(p.money(m[1]), m[2:]), true
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
	return round(share(p.sum, factor)), p.priced
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
