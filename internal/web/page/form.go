package page

import (
	"io"
	"net/http"
)

// maxForm is the maximum size of a form's body, in bytes.
const maxForm = 64 << 10

var errNoForm = &Message{Status: http.StatusBadRequest, Title: "This form could not be read", Text: "It may be too long. Go back and try again."}

// readForm parses the form in a page's request, even if the page needs none of its fields. Thus a body that is
// not a valid form has no effect.
func (v *Visit) readForm() error {
	if v.R.Method != http.MethodPost {
		return nil
	}
	v.R.Body = http.MaxBytesReader(v.W, v.R.Body, maxForm)
	if v.R.ParseForm() != nil {
		return errNoForm
	}
	if n, _ := io.ReadFull(v.R.Body, make([]byte, 1)); n > 0 {
		return errNoForm // ParseForm ignores other media types
	}
	for name, values := range v.R.PostForm {
		if !IsText(name) || !IsText(values...) {
			return ErrNoText
		}
	}
	v.Form = v.R.PostForm
	return nil
}
