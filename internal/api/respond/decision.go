package respond

import (
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"quotad/internal/calendar"
	"quotad/internal/quota/model"
)

// QuotaExceeded is IANA's registered problem type for a refused hit.
const QuotaExceeded = "https://iana.org/assignments/http-problem-types#quota-exceeded"

// Subject is the subject of a decision: a cost on a customer's meter.
type Subject struct {
	Customer, Meter string
	Cost            int64
	Reservation     bool // the units are to be reserved and not yet charged
	Public          bool // the customer may read the answer, so no sentence in it is for operators
}

// AppendViews appends the view of each limit in a decision. A hit that was admitted without a charge has no
// views.
func AppendViews(views []model.View, d *model.Decision) []model.View {
	if d.Degraded && d.Allowed {
		return views
	}
	for i := range d.NumViews() {
		views = append(views, d.View(i))
	}
	return views
}

// AppendDecision appends the JSON response to a hit. A refusal begins with the members of a problem document.
// wait is the decision's retry-after, µs or Never. status is the HTTP status of a refusal.
func AppendDecision(b []byte, of *Subject, d *model.Decision, views []model.View, wait int64, status int) []byte {
	if d.Allowed {
		b = append(b, `{"allowed":true`...)
	} else {
		b = appendRefusal(b, of, views, wait, status)
		b = append(b, `,"allowed":false`...)
	}
	return AppendOutcome(b, of, d, views, wait)
}

// AppendOutcome appends the members that all decisions have after "allowed", and the end of
// the object.
func AppendOutcome(b []byte, of *Subject, d *model.Decision, views []model.View, wait int64) []byte {
	b = append(b, `,"customer":`...)
	b = AppendString(b, of.Customer)
	b = append(b, `,"meter":`...)
	b = AppendString(b, of.Meter)
	b = append(b, `,"cost":`...)
	b = strconv.AppendInt(b, of.Cost, 10)
	b = AppendInstant(b, d)
	if d.AsOf != 0 {
		b = append(b, `,"as_of":`...)
		b = AppendTime(b, d.AsOf)
	}
	if d.Degraded {
		b = append(b, `,"degraded":true`...)
	}
	b = AppendReplayed(b, d)
	b = append(b, `,"retry_after_ms":`...)
	b = appendWait(b, wait)
	return append(AppendLimits(b, views), '}')
}

// AppendInstant appends the instant of a decision, and the key of the test clock if the customer has one.
func AppendInstant(b []byte, d *model.Decision) []byte {
	b = append(b, `,"at":`...)
	b = AppendTime(b, d.At)
	if d.Target.Clock == nil {
		return b
	}
	b = append(b, `,"test_clock":`...)
	return AppendString(b, d.Target.Clock.Key)
}

// AppendReplayed appends whether the operation was already done earlier under its id.
func AppendReplayed(b []byte, d *model.Decision) []byte {
	b = append(b, `,"replayed":`...)
	return strconv.AppendBool(b, d.Replayed)
}

// AppendLimits appends the list of all limits.
func AppendLimits(b []byte, views []model.View) []byte {
	b = append(b, `,"limits":[`...)
	for i := range views {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(AppendView(b, &views[i]), '}')
	}
	return append(b, ']')
}

// appendRefusal appends the members of RFC 9457 with which a refusal begins, without the end of the object.
func appendRefusal(b []byte, of *Subject, views []model.View, wait int64, status int) []byte {
	b = append(b, `{"type":"`+QuotaExceeded+`","title":"Quota exceeded","status":`...)
	b = strconv.AppendInt(b, int64(status), 10)
	b = append(b, `,"detail":"`...)
	b = appendWhy(b, of, views, wait)
	b = append(b, `","violated-policies":[`...)
	for i, n := 0, 0; i < len(views); i++ {
		if !refuses(&views[i]) {
			continue
		}
		if n > 0 {
			b = append(b, ',')
		}
		b = AppendString(b, views[i].Limit.Name)
		n++
	}
	return append(b, ']')
}

// refuses reports whether the limit refused the hit.
func refuses(v *model.View) bool { return v.Limit.Mode == model.Hard && v.RetryAfter != 0 }

// Why returns the sentence for people that explains the refusal in a decision.
func Why(of *Subject, d *model.Decision) string {
	return string(appendWhy(nil, of, d.Views(), d.RetryAfter()))
}

// appendWhy appends a sentence for people that names the refusing limits and the next step. Names of limits need
// no escaping. A public sentence contains only the names, numbers and wait of limits. If no limit refuses,
// another hit of the same atomic batch was refused.
func appendWhy(b []byte, of *Subject, views []model.View, wait int64) []byte {
	if !slices.ContainsFunc(views, func(v model.View) bool { return refuses(&v) }) {
		return append(b, "This hit would be admitted, but another one of its atomic batch is refused: none was charged."...)
	}
	tooMuch := false
	for i := range views {
		if v := &views[i]; refuses(v) {
			most := v.Limit.Capacity()
			tooMuch = tooMuch || 0 < most && most < of.Cost
			b = appendRoom(b, v, of.Cost, most)
		}
	}
	switch {
	case of.Public:
		b = append(b, "The request costs "...)
	case of.Reservation:
		b = append(b, "The reservation costs "...)
	default:
		b = append(b, "The hit costs "...)
	}
	b = strconv.AppendInt(b, of.Cost, 10)
	switch {
	case tooMuch && !of.Public:
		return append(b, ": split it, or raise the limit."...)
	case wait == model.Never:
		return append(b, " and will not be admitted by waiting."...)
	}
	b = append(b, ": send it again in "...)
	b = appendSpan(b, ceilDiv(wait, second))
	return append(b, '.')
}

// appendRoom appends the cost that a refusing limit would admit now. If the limit never admits the requested
// cost, appendRoom appends the largest cost that the limit ever admits.
func appendRoom(b []byte, v *model.View, cost, most int64) []byte {
	b = append(b, "Limit "...)
	b = append(b, v.Limit.Name...)
	switch {
	case most == 0:
		return append(b, " is 0 and admits nothing. "...)
	case most < cost:
		b = append(b, " never admits more than "...)
		b = strconv.AppendInt(b, most, 10)
		return append(b, " at once. "...)
	case v.Remaining == 0:
		return append(b, " is used up. "...)
	}
	b = append(b, " admits at most "...)
	b = strconv.AppendInt(b, v.Remaining, 10)
	return append(b, " now. "...)
}

// appendSpan appends a time in whole seconds for people, such as 7 min 12 s, 1 h 12 min, or 30 d 4 h. The time
// is rounded up to its two largest units.
func appendSpan(b []byte, seconds int64) []byte {
	units := [...]struct {
		name    string
		seconds int64
	}{{" d", 86400}, {" h", 3600}, {" min", 60}, {" s", 1}}
	for i := range units[:len(units)-1] {
		large, small := units[i].seconds, units[i+1].seconds
		if seconds >= large {
			rest := ceilDiv(seconds, small) * small
			b = strconv.AppendInt(b, rest/large, 10)
			b = append(b, units[i].name...)
			if rest %= large; rest > 0 {
				b = append(b, ' ')
				b = strconv.AppendInt(b, rest/small, 10)
				b = append(b, units[i+1].name...)
			}
			return b
		}
	}
	b = strconv.AppendInt(b, seconds, 10)
	return append(b, " s"...)
}

// AppendView appends the members of one limit without the end of the object, so that the quota response can
// append more members.
func AppendView(b []byte, v *model.View) []byte {
	l := v.Limit
	b = append(b, `{"name":"`...)
	b = append(b, l.Name...)
	b = append(b, `","algorithm":"`...)
	b = append(b, l.Algorithm.String()...)
	b = append(b, `","mode":"`...)
	b = append(b, l.Mode.String()...)
	b = append(b, `","limit":`...)
	b = strconv.AppendInt(b, l.Limit, 10)
	b = append(b, `,"used":`...)
	b = strconv.AppendInt(b, v.Used, 10)
	b = append(b, `,"remaining":`...)
	b = strconv.AppendInt(b, v.Remaining, 10)
	b = append(b, `,"exceeded":`...)
	b = strconv.AppendBool(b, v.Exceeded)
	b = append(b, `,"retry_after_ms":`...)
	b = appendWait(b, v.RetryAfter)
	b = append(b, `,"reset_at":`...)
	b = appendReset(b, v.ResetAt)
	b = append(b, `,"window":`...)
	if l.WindowText == "" {
		return append(b, "null"...)
	}
	b = append(b, '"')
	b = append(b, l.WindowText...)
	return append(b, '"')
}

// AppendString appends a JSON string. Keys and names are nearly always plain ASCII, which is copied. Other text
// is escaped, and invalid UTF-8 is replaced.
func AppendString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			b, _ = jsontext.AppendQuote(b, s) // its error only reports that UTF-8 was replaced
			return b
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

// AppendTime appends an instant in µs as a JSON string: RFC 3339 in UTC, with up to six
// decimals. An instant outside the years 0 to 9999 becomes the nearest one inside.
func AppendTime(b []byte, at int64) []byte {
	at = min(max(at, calendar.MinInstant), calendar.MaxInstant)
	b = append(b, '"')
	b = time.UnixMicro(at).UTC().AppendFormat(b, time.RFC3339Nano)
	return append(b, '"')
}

// appendReset appends the instant of a reset, or null for never.
func appendReset(b []byte, at int64) []byte {
	if at == model.NoReset {
		return append(b, "null"...)
	}
	return AppendTime(b, at)
}

// appendWait appends a wait in whole milliseconds, rounded up, or null for never.
func appendWait(b []byte, wait int64) []byte {
	if wait == model.Never {
		return append(b, "null"...)
	}
	return strconv.AppendInt(b, ceilDiv(wait, 1000), 10)
}

// ceilDiv returns a/b rounded up, for b > 0. A negative a counts as 0.
func ceilDiv(a, b int64) int64 {
	if a <= 0 {
		return 0
	}
	return (a-1)/b + 1
}
