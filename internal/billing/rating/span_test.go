package rating_test

import (
	"testing"

	"pgregory.net/rapid"

	"quotad/internal/billing/rating"
)

func TestSpans(t *testing.T) {
	for _, c := range []struct {
		span         rating.Span
		amount       int64
		money, units int64
	}{
		{rating.Span{}, 1000, 1000, 1000},
		{month, 1000, 1000, 1000},
		{rating.Span{Start: 0, End: 30 * day, From: 0, To: 10 * day}, 1000, 333, 333},
		{third, 1000, 334, 333}, // 667 − 333, 666 − 333
		{rating.Span{Start: 0, End: 30 * day, From: 20 * day, To: 30 * day}, 1000, 333, 334},
		{rating.Span{Start: 0, End: 30 * day, From: 7, To: 7}, 1000, 0, 0},
		{rating.Span{Start: 0, End: 2, From: 0, To: 1}, 1, 1, 0}, // half away from zero; down
		{rating.Span{Start: 0, End: 2, From: 1, To: 2}, 1, 0, 1},
		{rating.Span{Start: 0, End: 2, From: 0, To: 1}, 5, 3, 2}, // to even would be 2
		{rating.Span{Start: -3, End: 1, From: -2, To: 1}, 9, 7, 7},
		{rating.Span{Start: 0, End: 3, From: 0, To: 2}, rating.MaxMinor, 666666666666666, 666666666666666},
		// A year of microseconds times the largest amount needs more than 64 bits.
		{rating.Span{Start: 0, End: 366 * day, From: 1, To: 366 * day}, rating.MaxMinor, rating.MaxMinor - 32, rating.MaxMinor - 31},
		{month, 0, 0, 0},
		{third, 0, 0, 0},
		// What lies outside of the period is no part of it.
		{rating.Span{Start: 10, End: 20, From: 5, To: 15}, 100, 50, 50},
		{rating.Span{Start: 10, End: 20, From: 15, To: 25}, 100, 50, 50},
	} {
		if got := c.span.Money(c.amount); got != c.money {
			t.Errorf("%v: %d of %d, want %d", c.span, got, c.amount, c.money)
		}
		if got := c.span.Units(c.amount); got != c.units {
			t.Errorf("%v: %d units of %d, want %d", c.span, got, c.amount, c.units)
		}
	}
}

func TestSpansAreThoseOfTheNaiveWay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSpan(t)
		amount := rapid.OneOf(rapid.Int64Range(0, 20), rapid.Int64Range(0, rating.MaxMinor)).Draw(t, "amount")
		if got, want := s.Money(amount), part(amount, s, nearest); got != want {
			t.Fatalf("money: %d, want %d", got, want)
		}
		if got, want := s.Units(amount), part(amount, s, floor); got != want {
			t.Fatalf("units: %d, want %d", got, want)
		}
	})
}

// However a period is cut, its parts add up to it.
func TestPartsAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		length := rapid.Int64Range(1, 400*day).Draw(t, "length")
		amount := rapid.Int64Range(0, rating.MaxMinor).Draw(t, "amount")
		money, units, from := int64(0), int64(0), int64(0)
		for from < length {
			to := rapid.OneOf(rapid.Just(length), rapid.Int64Range(from+1, length)).Draw(t, "to")
			s := rating.Span{Start: 0, End: length, From: from, To: to}
			money, units, from = money+s.Money(amount), units+s.Units(amount), to
		}
		if money != amount || units != amount {
			t.Fatalf("%d money and %d units of %d", money, units, amount)
		}
	})
}
