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

// A form is a set of fields that become the JSON body of one API request. If the API reports an error for a
// member, the form shows the error beside the field of the same name.
type form struct {
	Name   string // unique on the page
	Title  string
	Note   string
	Action string
	Button string
	Class  string // CSS class of the button
	Open   bool   // shown unfolded
	Ask    string // question to confirm; if empty, there is no confirmation
	Sure   string // text of the button that confirms
	Fields []field
	Wrong  string // errors that belong to no field
}

// A field is one input. Kind is one of the kinds below.
type field struct {
	Name, Label, Kind, Value, Help, Wrong string
	Options                               []option
	Optional                              bool
	Currency                              string         // for money
	Zone                                  *time.Location // for an instant
}

type option struct{ Value, Text string }

// The kinds of fields.
const (
	kindText     = "text"
	kindNumber   = "number"         // a whole number
	kindMoney    = "money"          // a decimal in major units, sent as minor units
	kindInstant  = "datetime-local" // in the field's zone
	kindSelect   = "select"
	kindCheck    = "checkbox"
	kindHidden   = "hidden"
	kindLines    = "textarea" // an array of strings, one for each line
	maxFieldSize = 20_000
)

// fill sets the values of the fields to the submitted values.
func (f *form) fill(typed url.Values) {
	for i := range f.Fields {
		f.Fields[i].Value = typed.Get(f.Fields[i].Name)
	}
	f.Open = true
}

// body returns the JSON members of the submitted fields. It reports whether all fields are valid.
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

// read returns the field's JSON value, or nil if the value is omitted. wrong is the error of an invalid value.
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

// instantField returns an optional field for a date and time in a zone, which the label names.
func instantField(name, label string, zone *time.Location) field {
	return field{Name: name, Label: label + ", " + zone.String(), Kind: kindInstant, Zone: zone, Optional: true}
}

// readInstant parses a date and time and returns it as RFC 3339. Without an offset, typed is a wall-clock time
// in zone.
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

// minorUnits parses a decimal in major units of a currency. It never rounds, and rejects more digits after the
// point than the currency has.
func minorUnits(typed, currency string) (int64, bool) {
	digits, known := plans.Exponent(currency)
	whole, fraction, _ := strings.Cut(typed, ".")
	if !known || len(fraction) > digits {
		return 0, false
	}
	n, err := strconv.ParseInt(whole+fraction+strings.Repeat("0", digits-len(fraction)), 10, 64)
	return n, err == nil
}

// tell adds the API's errors to the fields that they concern. It reports false for a problem that the form did
// not cause.
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

// A post is a submitted form with its API request and the address to which the browser is redirected.
type post struct {
	form   *form
	method string
	path   func(members map[string]any) string // removes the members that become part of the path
	header http.Header
	add    map[string]any // members without a field
	answer any            // destination of the decoded response, or nil
	to     string
}

// send sends the API request of a submitted form. If a value is invalid, send returns the HTTP status for the
// page that shows the form again, and sets the errors in the form. Otherwise, status is 200.
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

// at returns a path function for a path that contains no field.
func at(path string) func(map[string]any) string {
	return func(map[string]any) string { return path }
}

// named returns a path function for a path that ends with the value of a field.
func named(path, name string) func(map[string]any) string {
	return func(members map[string]any) string {
		last, _ := members[name].(string)
		delete(members, name)
		return path + page.Segment(last)
	}
}

// An input is a field with the HTML id that its label refers to.
type input struct {
	ID    string
	Field field
}

func inputOf(form string, d field) input { return input{form + "-" + d.Name, d} }
