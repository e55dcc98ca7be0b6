package page

import (
	"io"
	"net/http"
)

// maxForm bounds the body of a form, in bytes.
const maxForm = 64 << 10

var errNoForm = &Message{Status: http.StatusBadRequest, Title: "This form could not be read", Text: "It may be too long. Go back and try again."}

// readForm reads the form that a request of a page sends, also for a page that needs no field of it. So
// nothing is done for a form that is no text.
func (v *Visit) readForm() error {
	if v.R.Method != http.MethodPost {
		return nil
	}
	v.R.Body = http.MaxBytesReader(v.W, v.R.Body, maxForm)
	if v.R.ParseForm() != nil {
		return errNoForm
	}
	if n, _ := io.ReadFull(v.R.Body, make([]byte, 1)); n > 0 {
		return errNoForm // of another media type, of which ParseForm reads nothing
	}
	for name, values := range v.R.PostForm {
		if !IsText(name) || !IsText(values...) {
			return ErrNoText
		}
	}
	v.Form = v.R.PostForm
	return nil
}
