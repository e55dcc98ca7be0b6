package admin

import (
	"cmp"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"quotad/client"
	"quotad/internal/calendar"
	"quotad/internal/plans"
	"quotad/internal/web/page"
	"quotad/internal/web/words"
)

// form is a list of fields that become the JSON body of one API request. The API's error about a member is shown
// beside the field with the same name.
type form struct {
	Name   string // name that is unique on its page
	Title  string
	Note   string
	Action string
	Button string
	Class  string // class of the button
	Open   bool   // the form is shown unfolded
	Ask    string // question before the request is sent; empty if there is no question
	Sure   string // text of the button that confirms the question
	Fields []field
	Wrong  string // error that belongs to no field
}

// field is one input. Kind is one of the kinds below.
type field struct {
	Name, Label, Kind, Value, Help, Wrong string
	Options                               []option
	Optional                              bool
	Currency                              string         // currency of an amount
	Zone                                  *time.Location // timezone of an instant
}

type option struct{ Value, Text string }

// The kinds of fields.
const (
	kindText     = "text"
	kindNumber   = "number"         // a whole number
	kindMoney    = "money"          // a decimal in major units, sent as minor units
	kindInstant  = "datetime-local" // in the field's timezone
	kindSelect   = "select"
	kindCheck    = "checkbox"
	kindHidden   = "hidden"
	kindLines    = "textarea" // an array of texts, one per line
	maxFieldSize = 20_000
)

// fill copies the submitted values into the fields.
func (f *form) fill(typed url.Values) {
	for i := range f.Fields {
		f.Fields[i].Value = typed.Get(f.Fields[i].Name)
	}
	f.Open = true
}

// body returns the JSON members of the submitted values. It reports whether all fields could be parsed.
func (f *form) body() (members map[string]any, ok bool) {
	members, ok = map[string]any{}, true
	for i := range f.Fields {
		d := &f.Fields[i]
		value, wrong := d.read()
		switch {
		case wrong != "":
			d.Wrong, ok = wrong, false
		case value != nil:
			members[d.Name] = value
		}
	}
	return members, ok
}

// read returns the JSON value of a field, or nil if the field is left out.
func (d *field) read() (value any, wrong string) {
	typed := strings.TrimSpace(d.Value)
	switch {
	case len(typed) > maxFieldSize:
		return nil, "This is too long."
	case d.Kind == kindCheck:
		return typed != "", ""
	case typed == "" && d.Optional:
		return nil, ""
	case typed == "":
		return nil, "This is needed."
	}
	switch d.Kind {
	case kindNumber:
		n, err := strconv.ParseInt(typed, 10, 64)
		if err != nil {
			return nil, "Write a whole number, without commas or points."
		}
		return n, ""
	case kindMoney:
		minor, ok := minorUnits(typed, d.Currency)
		if !ok {
			digits, _ := plans.Exponent(d.Currency)
			return nil, "Write an amount such as 12.50, with at most " + strconv.Itoa(digits) + " digits after the point."
		}
		return minor, ""
	case kindInstant:
		at, ok := readInstant(typed, d.Zone)
		if !ok {
			return nil, "Write a date and a time, such as 2027-01-31T12:00."
		}
		return at, ""
	case kindLines:
		return strings.FieldsFunc(typed, func(c rune) bool { return c == '\n' || c == '\r' }), ""
	}
	return typed, ""
}

// instantField returns a field with a date and a time in a timezone, which its label names.
func instantField(name, label string, zone *time.Location) field {
	return field{Name: name, Label: label + ", " + zone.String(), Kind: kindInstant, Zone: zone, Optional: true}
}

// readInstant parses a date and a time and returns them as RFC 3339. Without an offset, the time is the wall
// clock of the timezone.
func readInstant(typed string, zone *time.Location) (rfc3339 string, ok bool) {
	if at, err := time.Parse(time.RFC3339, typed); err == nil {
		return at.UTC().Format(time.RFC3339), true
	}
	if len(typed) == len("2006-01-02T15:04") {
		typed += ":00"
	}
	wall, err := calendar.ParseAnchor(typed)
	if err != nil {
		return "", false
	}
	return time.UnixMicro(wall.Instant(zone)).UTC().Format(time.RFC3339), true
}

// minorUnits parses a decimal in a currency's major units. It accepts only as many decimal places as the
// currency has, and rounds nothing.
func minorUnits(typed, currency string) (int64, bool) {
	digits, known := plans.Exponent(currency)
	whole, fraction, _ := strings.Cut(typed, ".")
	if !known || len(fraction) > digits {
		return 0, false
	}
	n, err := strconv.ParseInt(whole+fraction+strings.Repeat("0", digits-len(fraction)), 10, 64)
	return n, err == nil
}

// tell adds the API's problem to the fields that it concerns. It returns false for a problem that does not
// concern the form.
func (f *form) tell(problem *client.Problem) bool {
	if problem.Status >= http.StatusInternalServerError || problem.Status == http.StatusForbidden {
		return false
	}
	var rest []string
	for _, e := range problem.Errors {
		at := slices.IndexFunc(f.Fields, func(d field) bool { return d.Name == e.Field })
		if at < 0 {
			rest = append(rest, strings.TrimPrefix(words.PathWords(e.Field)+": "+e.Detail, ": "))
			continue
		}
		f.Fields[at].Wrong = e.Detail
	}
	if len(problem.Errors) == 0 {
		rest = append(rest, cmp.Or(problem.Detail, problem.Title))
	}
	f.Wrong = strings.Join(rest, "; ")
	return true
}

// post is a submitted form with the target of its API request and the page that the browser opens afterwards.
type post struct {
	form   *form
	method string
	path   func(members map[string]any) string // returns the path and removes the members that are in it
	header http.Header
	add    map[string]any // members that are not fields
	answer any            // target for decoding the response; nil if not needed
	to     string
}

// send makes the API request of a form. If the request fails, send adds the fault to the form and returns the
// status of the page that shows the form again.
func (v *visit) send(p post) (status int, err error) {
	p.form.fill(v.Form)
	members, ok := p.form.body()
	if !ok {
		return http.StatusUnprocessableEntity, nil
	}
	path := p.path(members)
	maps.Copy(members, p.add)
	_, err = v.API.Do(v.Ctx(), p.method, path, p.header, members, p.answer)
	if problem, told := page.ProblemOf(err); told && p.form.tell(problem) {
		return problem.Status, nil
	}
	return http.StatusOK, err
}

// at returns a path that contains no field.
func at(path string) func(map[string]any) string {
	return func(map[string]any) string { return path }
}

// named returns a path that ends with a field's value.
func named(path, name string) func(map[string]any) string {
	return func(members map[string]any) string {
		last, _ := members[name].(string)
		delete(members, name)
		return path + page.Segment(last)
	}
}

// input is a field with the id to which its label refers.
type input struct {
	ID    string
	Field field
}

func inputOf(form string, d field) input { return input{form + "-" + d.Name, d} }
