package main

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/stripe/stripe-go/v85"

	"quotad/client"
)

// personError is what no later try would change: a person has to see to it. It ends the job.
type personError struct {
	kind, stripe, text string
}

func (e *personError) Error() string { return e.text }

func person(kind, stripe, format string, args ...any) error {
	return &personError{kind, stripe, fmt.Sprintf(format, args...)}
}

// feedError is about quotad's events as a whole. The bridge stops: to go on could lose invoices.
type feedError struct{ text string }

func (e *feedError) Error() string { return e.text }

// answered is the status with which a side has answered, or 0: then nobody knows what was done.
func answered(err error) int {
	if e, ok := errors.AsType[*stripe.Error](err); ok {
		return e.HTTPStatusCode
	}
	if e, ok := errors.AsType[*client.Problem](err); ok {
		return e.Status
	}
	return 0
}

// away reports that an error is about a side and not about the invoice.
func away(err error) bool {
	switch answered(err) {
	case 0, http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable,
		http.StatusGatewayTimeout:
		return true
	}
	return false
}

// refused reports that Stripe has refused a request and has done nothing. Stripe gives such an
// answer again to the same idempotency key for a day, so the next try needs another one. After any
// other failure the key must stay: the request may have been done.
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

// missing reports that Stripe does not have an object.
func missing(err error) bool {
	e, ok := errors.AsType[*stripe.Error](err)
	return ok && (e.HTTPStatusCode == http.StatusNotFound || e.Code == stripe.ErrorCodeResourceMissing)
}

// plain is an error with Stripe's own words and the id of its request. Stripe's Error is JSON of all
// that it says, people's data among it.
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
