package fastpath

import (
	"bufio"
	"bytes"
	"net/http"
	"testing"
	"time"
)

// The Date of an answer that is used again is that of its own second, also when the clock went back.
func TestDateOfAnswersUsedAgain(t *testing.T) {
	day := time.Date(2026, 11, 22, 23, 59, 59, 0, time.FixedZone("east", 3600))
	a := getAnswer()
	defer putAnswer(a)
	for _, now := range []time.Time{time.Unix(0, 0), day, day.Add(999 * time.Millisecond), day.Add(time.Second), day.Add(24 * time.Hour), day} {
		var wire bytes.Buffer
		a.reset()
		_, err := a.Write([]byte("{}"))
		check(t, err)
		check(t, a.send(&wire, now, false))
		r, err := http.ReadResponse(bufio.NewReader(&wire), nil)
		check(t, err)
		check(t, r.Body.Close())
		if got, want := r.Header.Get("Date"), now.UTC().Format(http.TimeFormat); got != want {
			t.Errorf("the Date is %q, not %q", got, want)
		}
	}
}
