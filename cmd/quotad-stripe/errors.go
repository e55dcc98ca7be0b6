package main

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/stripe/stripe-go/v85"

	"quotad/client"
)

// personError is an error that a retry would not resolve, so a person must resolve it. It ends the job.
type personError struct {
	kind, stripe, text string
}

func (e *personError) Error() string { return e.text }

func person(kind, stripe, format string, args ...any) error {
	return &personError{kind, stripe, fmt.Sprintf(format, args...)}
}

// feedError is an error of quotad's whole event feed. The bridge stops, because continuing could lose invoices.
type feedError struct{ text string }

func (e *feedError) Error() string { return e.text }

// answered returns the HTTP status of an error response. It returns 0 if there was no response, so the outcome
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

// away reports whether the error does not concern the invoice, because quotad or Stripe is unreachable, is
// overloaded, or rejects the key.
func away(err error) bool {
	switch answered(err) {
	case 0, http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable,
		http.StatusGatewayTimeout:
		return true
	}
	return false
}

// refused reports whether Stripe rejected a request without any effect. Stripe repeats such a response for the
// same idempotency key for a day, so a retry needs another key. After any other failure the key must stay the
// same, because Stripe may have processed the request.
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

// missing reports whether the error means that an object does not exist at Stripe.
func missing(err error) bool {
	e, ok := errors.AsType[*stripe.Error](err)
	return ok && (e.HTTPStatusCode == http.StatusNotFound || e.Code == stripe.ErrorCodeResourceMissing)
}

// plain returns an error with only Stripe's message and the id of the request. The full text of Stripe's error
// is JSON with every field, including personal data.
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
