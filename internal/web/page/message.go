package page

import (
	"context"
	"errors"
	"net/http"

	"quotad/internal/plans"
	quotasession "quotad/internal/quota/session"
	"quotad/internal/web/words"
)

// A Message is a page that says one thing. It is an error where the page that was asked for
// cannot be shown.
type Message struct {
	Status      int
	Title, Text string
	Link        *Link
	Again       bool // there is a link to the same page
}

// A Link is a way on.
type Link struct{ Text, URL string }

func (m *Message) Error() string { return m.Title }

// A messageData is what the sheet of a message shows.
type messageData struct {
	Text  string
	Links []Link // ways on, the nearest first
	Again bool
}

// View is the page that says it.
func (m *Message) View() *View {
	data := messageData{Text: m.Text, Again: m.Again}
	if m.Link != nil {
		data.Links = []Link{*m.Link}
	}
	return &View{Status: m.Status, Sheet: "message", Layout: "plain", Title: m.Title, Data: data}
}

// errNoStaff leads to the page where one signs in.
var errNoStaff = errors.New("nobody is signed in")

// What is said in several places.
var (
	errSignedOut = &Message{Status: http.StatusUnauthorized, Title: "You are signed out", Text: "Go back to where you came from and open your usage again."}
	ErrMissing   = &Message{Status: http.StatusNotFound, Title: "There is no such page", Text: "The address may be mistyped, or the page has moved."}
	errLinkOver  = &Message{Status: http.StatusGone, Title: "This link has been used or is over", Text: "Links live 10 minutes and open once. Go back to where you found it and open your usage again."}
	errForbidden = &Message{Status: http.StatusForbidden, Title: "This is not for you", Text: "Your key does not allow this page."}
	ErrNoText    = &Message{Status: http.StatusUnprocessableEntity, Title: "This could not be read", Text: "What was sent is not text in UTF-8. Go back and try again."}
	errBusy      = &Message{Status: http.StatusServiceUnavailable, Title: "This cannot be shown just now", Text: "What you have left still counts. Reload in a moment.", Again: true}
	errBroken    = &Message{Status: http.StatusInternalServerError, Title: "Something went wrong", Text: "It has been noted. Reload in a moment; if it stays, tell support when it happened.", Again: true}
)

// MessageOf is what is said of an error that is no message.
func MessageOf(err error) *Message {
	problem, asked := ProblemOf(err)
	switch {
	case asked && problem.Status == http.StatusNotFound:
		return ErrMissing
	case asked && problem.Status == http.StatusForbidden:
		return errForbidden
	case asked && problem.Status == http.StatusServiceUnavailable, errors.Is(err, quotasession.ErrUnavailable),
		errors.Is(err, quotasession.ErrNoSession), errors.Is(err, quotasession.ErrBusy), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return errBusy
	case asked && problem.Status < http.StatusInternalServerError:
		return &Message{Status: problem.Status, Title: problem.Title, Text: words.Said(problem, words.PathWords), Again: true}
	case errors.Is(err, plans.ErrLinkOver):
		return errLinkOver
	}
	return errBroken
}
