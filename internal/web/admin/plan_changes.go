package admin

import (
	stdjson "encoding/json"
	"strconv"
	"strings"

	"quotad/internal/web/words"
)

// A change is one difference between two plans, with the effect of its publication.
type change struct {
	What, Was, Is, Does string
}

// The effects of changes, as the contract of plans specifies them.
const (
	doesAtOnce  = "at once for everyone on the plan who is not pinned"
	doesAnew    = "the limit starts again for everyone when this is published"
	doesKeep    = "what customers have used stays used"
	doesPeriod  = "from each customer’s next period"
	doesNothing = "from now on, on pages and invoices"
)

// changes returns the differences between two plans. was is nil if there was no plan before.
func changes(was, is document) (all []change) {
	if was == nil {
		was = document{}
	}
	before, after := was.withDefaults(), is.withDefaults()
	for _, f := range planFields {
		if before[f.Name] == after[f.Name] {
			continue
		}
		does := doesPeriod
		switch f.Name {
		case "name":
			does = doesNothing
		case "meters":
			does = "hits on a meter that the plan does not have are refused as not in the plan"
		case "currency", "interval", "interval_count":
			does = "a plan keeps these: write another plan"
			if len(was) == 0 {
				does = "for the plan’s first period"
			}
		}
		all = append(all, change{f.Label, f.inWords(before[f.Name]), f.inWords(after[f.Name]), does})
	}
	all = append(all, listChanges(before, after, "limits", "name", limitFields, limitDoes)...)
	all = append(all, listChanges(before, after, "prices", "meter", priceFields, func(name string) string {
		switch name {
		case "+":
			return "what is used until each customer’s next period is free"
		case "-":
			return "billed until the end of each customer’s period"
		}
		return doesPeriod
	})...)
	if a, b := featuresText(was), featuresText(is); a != b {
		all = append(all, change{"Features", a, b, doesAtOnce})
	}
	return all
}

// limitDoes returns the effect of a change to a limit's member. Some changes create another limit, whose bucket
// starts anew.
func limitDoes(name string) string {
	switch name {
	case "+":
		return "begins with nothing used, " + doesAtOnce
	case "-":
		return "judges nobody any more, " + doesAtOnce
	case "algorithm":
		return "another algorithm: " + doesAnew
	case "window", "align", "per", "precision", "meter":
		return doesAnew
	case "limit", "burst":
		return doesKeep
	}
	return doesAtOnce
}

// listChanges compares the items of a list. by is the field that identifies an item.
func listChanges(before, after map[string]string, list, by string, fields []planField, does func(field string) string) (all []change) {
	word := strings.TrimSuffix(list, "s")
	was, is := places(before, list, by), places(after, list, by)
	for _, key := range is.order {
		i := is.at[key]
		j, there := was.at[key]
		if !there {
			all = append(all, change{key, "", "new " + word, does("+")})
			continue
		}
		other := before[pathOf(list, j, "algorithm")] != after[pathOf(list, i, "algorithm")]
		for _, f := range fields {
			a, b := before[pathOf(list, j, f.Name)], after[pathOf(list, i, f.Name)]
			if a != b && (!other || !f.follows()) {
				all = append(all, change{key + ", " + strings.ToLower(f.Label), f.inWords(a), f.inWords(b), does(f.Name)})
			}
		}
	}
	for _, key := range was.order {
		if _, there := is.at[key]; !there {
			all = append(all, change{key, word, "", does("-")})
		}
	}
	return all
}

type placed struct {
	order []string
	at    map[string]int
}

// places returns the positions of the items in a list. by is the field that identifies an item.
func places(typed map[string]string, list, by string) placed {
	p := placed{at: map[string]int{}}
	n, _ := strconv.Atoi(typed[list])
	for i := range n {
		key := typed[pathOf(list, i, by)]
		if _, twice := p.at[key]; !twice {
			p.order, p.at[key] = append(p.order, key), i
		}
	}
	return p
}

// follows reports whether a field belongs only to some algorithms. Such a field changes together with the
// algorithm, whose own change is already listed.
func (f *planField) follows() bool {
	return f.Name == "align" || f.Name == "precision" || f.Name == "burst"
}

// inWords returns the typed value of a field as text for people.
func (f *planField) inWords(typed string) string {
	switch {
	case f.Kind == asSelect && typed != "":
		return optionText(typed)
	case f.Name == "window":
		return windowText(typed)
	case f.Kind == asNumber:
		if n, err := strconv.ParseInt(typed, 10, 64); err == nil {
			return words.Number(n)
		}
	}
	return strings.ReplaceAll(typed, "\n", "; ")
}

func featuresText(d document) string {
	features, _ := d["features"].(map[string]any)
	if len(features) == 0 {
		return ""
	}
	raw, err := stdjson.Marshal(features)
	if err != nil {
		return ""
	}
	return string(raw)
}
