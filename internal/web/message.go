package web

import (
	"context"
	"errors"
	"net/http"

	"quotad/internal/plans"
	quotasession "quotad/internal/quota/session"
)

// A message is a page that says one thing. It is an error where the page that was asked for
// cannot be shown.
type message struct {
	status      int
	title, text string
	link        *link
	again       bool // there is a link to the same page
}

type link struct{ Text, URL string }

func (m *message) Error() string { return m.title }

// A messageData is what the sheet of a message shows.
type messageData struct {
	Text  string
	Links []link // ways on, the nearest first
	Again bool
}

func (m *message) view() *view {
	data := messageData{Text: m.text, Again: m.again}
	if m.link != nil {
		data.Links = []link{*m.link}
	}
	return &view{status: m.status, sheet: "message", layout: "plain", title: m.title, data: data}
}

// errNoStaff leads to the page where one signs in.
var errNoStaff = errors.New("nobody is signed in")

var (
	errSignedOut = &message{status: http.StatusUnauthorized, title: "You are signed out", text: "Go back to where you came from and open your usage again."}
	errMissing   = &message{status: http.StatusNotFound, title: "There is no such page", text: "The address may be mistyped, or the page has moved."}
	errLinkOver  = &message{status: http.StatusGone, title: "This link has been used or is over", text: "Links live 10 minutes and open once. Go back to where you found it and open your usage again."}
	errForbidden = &message{status: http.StatusForbidden, title: "This is not for you", text: "Your key does not allow this page."}
	errNoText    = &message{status: http.StatusUnprocessableEntity, title: "This could not be read", text: "What was sent is not text in UTF-8. Go back and try again."}
	errBusy      = &message{status: http.StatusServiceUnavailable, title: "This cannot be shown just now", text: "What you have left still counts. Reload in a moment.", again: true}
	errBroken    = &message{status: http.StatusInternalServerError, title: "Something went wrong", text: "It has been noted. Reload in a moment; if it stays, tell support when it happened.", again: true}
)

// messageOf is what is said of an error that is no message.
func messageOf(err error) *message {
	problem, asked := problemOf(err)
	switch {
	case asked && problem.Status == http.StatusNotFound:
		return errMissing
	case asked && problem.Status == http.StatusForbidden:
		return errForbidden
	case asked && problem.Status == http.StatusServiceUnavailable, errors.Is(err, quotasession.ErrUnavailable),
		errors.Is(err, quotasession.ErrNoSession), errors.Is(err, quotasession.ErrBusy), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return errBusy
	case asked && problem.Status < http.StatusInternalServerError:
		return &message{status: problem.Status, title: problem.Title, text: said(problem, pathWords), again: true}
	case errors.Is(err, plans.ErrLinkOver):
		return errLinkOver
	}
	return errBroken
}
