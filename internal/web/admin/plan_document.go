package admin

import (
	"bytes"
	stdjson "encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"quotad/internal/billing/rating"
	"quotad/internal/plans"
	"quotad/internal/quota/model"
)

// A document is a plan in the API's JSON form, with numbers exactly as they were written.
type document map[string]any

func readDocument(raw []byte) (d document, err error) {
	decoder := stdjson.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	err = decoder.Decode(&d)
	return d, err
}

// pretty returns the document as indented JSON for editing.
func (d document) pretty() string {
	var b bytes.Buffer
	encoder := stdjson.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(map[string]any(d)); err != nil {
		panic(err)
	}
	return strings.TrimSpace(b.String())
}

// without returns a copy of the document without the named members, such as members that the API adds to a
// stored version.
func (d document) without(names ...string) document {
	d = maps.Clone(d)
	for _, name := range names {
		delete(d, name)
	}
	return d
}

// The kinds of a plan's fields.
const (
	asText     = "text"
	asNumber   = "number" // a whole number
	asMoney    = "money"  // minor units, shown in major units
	asSelect   = "select"
	asList     = "list"     // strings, one for each line
	asTiers    = "tiers"    // one for each line: up to, unit price, flat price
	asPercents = "percents" // whole percentages, separated by commas
)

// A planField is a field of the editor. The field's name is the name of the JSON member, as in the API's
// problems.
type planField struct {
	Name, Label, Kind, Help string
	Options                 []string // options of a select; the first option is the default
	More                    bool     // folded while it is empty
}

var planFields = []planField{
	{Name: "name", Label: "Name", Kind: asText},
	{Name: "currency", Label: "Currency", Kind: asText, Help: "Such as USD. All versions have one."},
	{Name: "interval", Label: "Billed each", Kind: asSelect, Options: []string{"month", "day", "week", "year"}},
	{Name: "interval_count", Label: "How many of them", Kind: asNumber},
	{Name: "base_price_minor", Label: "Base price", Kind: asMoney},
	{Name: "base_in", Label: "Base price is due", Kind: asSelect, Options: []string{"arrears", "advance"}},
	{
		Name: "base_every", Label: "Periods that it is for", Kind: asNumber,
		Help: "12 months of usage, billed each month, go with a yearly base price. Above 1 it is due in advance.",
	},
	{Name: "minimum_minor", Label: "Least that a period costs", Kind: asMoney},
	{Name: "meters", Label: "Other meters, one a line", Kind: asList, Help: "Admitted and counted, without limit and price."},
}

var limitFields = []planField{
	{Name: "name", Label: "Name", Kind: asText},
	{Name: "meter", Label: "Meter", Kind: asText},
	{Name: "algorithm", Label: "Algorithm", Kind: asSelect, Options: model.AlgorithmNames()},
	{Name: "limit", Label: "Units", Kind: asNumber, Help: "0 lets nothing through."},
	{Name: "window", Label: "Window", Kind: asText, Help: "5m, 1h, 1d, calendar_month, billing_period."},
	{Name: "burst", Label: "Bucket holds", Kind: asNumber, More: true},
	{Name: "per", Label: "For each value of", Kind: asText, Help: "An attribute, such as ip.", More: true},
	{Name: "mode", Label: "Beyond it", Kind: asSelect, Options: []string{"hard", "soft", "shadow"}, More: true},
	{Name: "on_outage", Label: "In an outage", Kind: asSelect, Options: []string{"", "allow", "deny"}, More: true},
	{Name: "notify", Label: "Notify at", Kind: asPercents, Help: "Percent of it, such as 80, 100. Each raises an event.", More: true},
	{Name: "align", Label: "Windows start", Kind: asSelect, Options: []string{"", "clock", "first_hit"}, More: true},
	{Name: "precision", Label: "Blocks of the log", Kind: asText, More: true},
	{Name: "ttl", Label: "Reservations last", Kind: asText, More: true},
}

var priceFields = []planField{
	{Name: "meter", Label: "Meter", Kind: asText},
	{Name: "model", Label: "Model", Kind: asSelect, Options: plans.PriceModels()},
	{Name: "unit_price", Label: "Price of a unit", Kind: asText, Help: "A decimal, such as 0.0004."},
	{Name: "included", Label: "Included units", Kind: asNumber},
	{Name: "package_size", Label: "Units of a package", Kind: asNumber, More: true},
	{Name: "package_price", Label: "Price of a package", Kind: asText, More: true},
	{Name: "tiers", Label: "Tiers, one a line", Kind: asTiers, Help: "Up to, unit price, flat price: 1000 0.01, then * 0.005 for the last.", More: true},
	{Name: "minimum_minor", Label: "At least", Kind: asMoney, More: true},
	{Name: "maximum_minor", Label: "At most", Kind: asMoney, More: true},
	{
		Name: "level_by", Label: "Of what is held", Kind: asSelect, Options: []string{"", "average", "peak", "last"},
		Help: "Of a level meter: which level of a period is billed.", More: true,
	},
}

// fields returns the document's values as text for inputs, by the paths of the fields.
func (d document) fields() map[string]string {
	typed, currency := map[string]string{}, textOf(d["currency"])
	for _, f := range planFields {
		typed[f.Name] = f.show(d[f.Name], currency)
	}
	for _, list := range planLists {
		items, _ := d[list.name].([]any)
		typed[list.name] = strconv.Itoa(len(items))
		for i, item := range items {
			members, _ := item.(map[string]any)
			for _, f := range list.fields {
				typed[pathOf(list.name, i, f.Name)] = f.show(members[f.Name], currency)
			}
		}
	}
	return typed
}

// planLists are the lists in a plan whose items the editor shows separately.
var planLists = []struct {
	name, item string
	fields     []planField
	most       int
}{{"limits", "limit", limitFields, 100}, {"prices", "price", priceFields, 100}}

func pathOf(list string, i int, name string) string { return fmt.Sprintf("%s[%d].%s", list, i, name) }

func textOf(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case stdjson.Number:
		return v.String()
	}
	return ""
}

// show returns a member's value as text for an input.
func (f *planField) show(value any, currency string) string {
	switch f.Kind {
	case asMoney:
		digits, known := plans.Exponent(currency)
		if minor, err := strconv.ParseInt(textOf(value), 10, 64); err == nil && known {
			return rating.Format(minor, digits)
		}
	case asList:
		items, _ := value.([]any)
		var lines []string
		for _, item := range items {
			lines = append(lines, textOf(item))
		}
		return strings.Join(lines, "\n")
	case asPercents:
		items, _ := value.([]any)
		var all []string
		for _, item := range items {
			all = append(all, textOf(item))
		}
		return strings.Join(all, ", ")
	case asTiers:
		return showTiers(value)
	}
	return textOf(value)
}

func showTiers(value any) string {
	items, _ := value.([]any)
	var lines []string
	for _, item := range items {
		tier, _ := item.(map[string]any)
		upTo := textOf(tier["up_to"])
		if upTo == "" {
			upTo = "*"
		}
		lines = append(lines, strings.TrimSpace(upTo+" "+textOf(tier["unit_price"])+" "+textOf(tier["flat_price"])))
	}
	return strings.Join(lines, "\n")
}

// typedDocument builds a document from the typed fields. Members without a field are copied from before. wrong
// contains an error for each field that cannot become a member.
func typedDocument(typed map[string]string, before document) (d document, wrong map[string]string) {
	d, wrong = document{}, map[string]string{}
	for _, name := range []string{"features", "apply_to"} {
		if value, there := before[name]; there {
			d[name] = value
		}
	}
	currency := strings.TrimSpace(typed["currency"])
	put := func(into map[string]any, f *planField, path string) {
		value, fault := f.read(strings.TrimSpace(typed[path]), currency)
		if fault != "" {
			wrong[path] = fault
		} else if value != nil {
			into[f.Name] = value
		}
	}
	for i := range planFields {
		put(d, &planFields[i], planFields[i].Name)
	}
	for _, list := range planLists {
		n, _ := strconv.Atoi(typed[list.name])
		items := []any{}
		for i := range min(max(0, n), list.most) {
			item := map[string]any{}
			for j := range list.fields {
				put(item, &list.fields[j], pathOf(list.name, i, list.fields[j].Name))
			}
			items = append(items, item)
		}
		d[list.name] = items
	}
	return d, wrong
}

// read returns the member's value from the typed text, or nil if the member is omitted. wrong is the error of an
// invalid text.
func (f *planField) read(typed, currency string) (value any, wrong string) {
	if typed == "" {
		if f.Kind == asList {
			return []any{}, ""
		}
		return nil, ""
	}
	switch f.Kind {
	case asNumber:
		n, err := strconv.ParseInt(strings.ReplaceAll(typed, ",", ""), 10, 64)
		if err != nil {
			return nil, "Write a whole number."
		}
		return n, ""
	case asMoney:
		digits, known := plans.Exponent(currency)
		if !known {
			return nil, "Name the currency first."
		}
		if minor, ok := minorUnits(strings.ReplaceAll(typed, ",", ""), currency); ok {
			return minor, ""
		}
		return nil, fmt.Sprintf("Write an amount with at most %d digits after the point.", digits)
	case asList:
		items := []any{}
		for line := range strings.FieldsSeq(typed) {
			items = append(items, line)
		}
		return items, ""
	case asPercents:
		return readPercents(typed)
	case asTiers:
		return readTiers(typed)
	}
	return typed, ""
}

func readPercents(typed string) (any, string) {
	var all []any
	for one := range strings.FieldsFuncSeq(typed, func(r rune) bool { return r == ',' || r == ' ' || r == '%' || r == ';' }) {
		n, err := strconv.ParseInt(one, 10, 64)
		if err != nil {
			return nil, "Write whole numbers with commas between, such as 80, 100."
		}
		all = append(all, n)
	}
	return all, ""
}

func readTiers(typed string) (any, string) {
	var tiers []any
	for line := range strings.Lines(typed) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if len(words) < 2 || len(words) > 3 {
			return nil, "Write two or three values on a line: up to, unit price, flat price."
		}
		tier := map[string]any{"up_to": nil, "unit_price": words[1]}
		if words[0] != "*" {
			n, err := strconv.ParseInt(strings.ReplaceAll(words[0], ",", ""), 10, 64)
			if err != nil {
				return nil, "Up to is a whole number, or * for the last tier."
			}
			tier["up_to"] = n
		}
		if len(words) == 3 {
			tier["flat_price"] = words[2]
		}
		tiers = append(tiers, tier)
	}
	return tiers, ""
}

// withoutItem returns a copy of the typed fields without the item of a list at index gone.
func withoutItem(typed map[string]string, list string, gone int) map[string]string {
	n, _ := strconv.Atoi(typed[list])
	if gone < 0 || gone >= n {
		return typed
	}
	typed = maps.Clone(typed)
	for _, l := range planLists {
		if l.name != list {
			continue
		}
		for i := gone; i < n; i++ {
			for _, f := range l.fields {
				typed[pathOf(list, i, f.Name)] = typed[pathOf(list, i+1, f.Name)]
			}
		}
	}
	typed[list] = strconv.Itoa(n - 1)
	return typed
}

// withDefaults returns the document's fields, and fills empty fields with the API's defaults.
func (d document) withDefaults() map[string]string {
	typed := d.fields()
	or := func(path, value string) {
		if typed[path] == "" {
			typed[path] = value
		}
	}
	or("interval_count", "1")
	or("base_in", "arrears")
	or("base_every", "1")
	for _, list := range planLists {
		n, _ := strconv.Atoi(typed[list.name])
		for i := range n {
			at := func(name string) string { return pathOf(list.name, i, name) }
			if list.name == "prices" {
				or(at("included"), "0")
				continue
			}
			or(at("mode"), "hard")
			or(at("on_outage"), "allow")
			own := model.WithDefaults(model.Spec{Algorithm: typed[at("algorithm")], Window: typed[at("window")]})
			or(at("align"), own.Align)
			or(at("precision"), own.Precision)
			if own.Burst != nil {
				or(at("burst"), typed[at("limit")])
			}
		}
	}
	for _, f := range planFields {
		if f.Kind == asMoney {
			if digits, known := plans.Exponent(typed["currency"]); known {
				or(f.Name, rating.Format(0, digits))
			}
		}
	}
	return typed
}
