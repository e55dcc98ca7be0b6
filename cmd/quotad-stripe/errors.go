package main

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/stripe/stripe-go/v85"

	"quotad/client"
)

// personError is an error that no retry can resolve. A person must handle it. It ends the job.
type personError struct {
	kind, stripe, text string
}

func (e *personError) Error() string { return e.text }

func person(kind, stripe, format string, args ...any) error {
	return &personError{kind, stripe, fmt.Sprintf(format, args...)}
}

// feedError is an error of quotad's events as a whole. The bridge stops, because it could lose invoices if it
// continued.
type feedError struct{ text string }

func (e *feedError) Error() string { return e.text }

// answered returns the status of a side's response. It returns 0 if there was no response, and then the result
// of the request is unknown.
func answered(err error) int {
	if e, ok := errors.AsType[*stripe.Error](err); ok {
		return e.HTTPStatusCode
	}
	if e, ok := errors.AsType[*client.Problem](err); ok {
		return e.Status
	}
	return 0
}

// away reports whether an error concerns a side and not the invoice.
func away(err error) bool {
	switch answered(err) {
	case 0, http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable,
		http.StatusGatewayTimeout:
		return true
	}
	return false
}

// refused reports whether Stripe has rejected a request without doing anything. Stripe repeats such a response
// to the same idempotency key for a day, so the next try needs another key. After any other failure the key must
// stay, because the request may have been done.
func refused(err error) bool {
	e, ok := errors.AsType[*stripe.Error](err)
	if !ok || e.Code == stripe.ErrorCodeIdempotencyKeyInUse {
		return false
	}
	switch e.HTTPStatusCode {
	case http.StatusBadRequest, http.StatusPaymentRequired, http.StatusNotFound, http.StatusConflict:
		return true
	}
	return false
}

// missing reports whether an object does not exist at Stripe.
func missing(err error) bool {
	e, ok := errors.AsType[*stripe.Error](err)
	return ok && (e.HTTPStatusCode == http.StatusNotFound || e.Code == stripe.ErrorCodeResourceMissing)
}

// plain returns an error with Stripe's message and the id of the request. Stripe's own Error contains the whole
// response as JSON, including personal data.
func plain(err error) error {
	e, ok := errors.AsType[*stripe.Error](err)
	if !ok {
		return err
	}
	words := []string{fmt.Sprintf("Stripe answered %d", e.HTTPStatusCode)}
	for _, word := range []string{string(e.Code), e.Param, e.Msg, e.RequestID} {
		if word != "" {
			words = append(words, word)
		}
	}
	return errors.New(strings.Join(words, ": "))
}
