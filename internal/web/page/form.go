package page

import (
	"io"
	"net/http"
)

// maxForm bounds the body of a submitted form, in bytes.
const maxForm = 64 << 10

var errNoForm = &Message{Status: http.StatusBadRequest, Title: "This form could not be read", Text: "It may be too long. Go back and try again."}

// readForm parses the form of a POST request into v.Form. Every page calls it, even a page that needs no field,
// so that a form with invalid text never has an effect.
func (v *Visit) readForm() error {
	if v.R.Method != http.MethodPost {
		return nil
	}
	v.R.Body = http.MaxBytesReader(v.W, v.R.Body, maxForm)
	if v.R.ParseForm() != nil {
		return errNoForm
	}
	if n, _ := io.ReadFull(v.R.Body, make([]byte, 1)); n > 0 {
		return errNoForm // ParseForm does not read bodies of other media types
	}
	for name, values := range v.R.PostForm {
		if !IsText(name) || !IsText(values...) {
			return ErrNoText
		}
	}
	v.Form = v.R.PostForm
	return nil
}
