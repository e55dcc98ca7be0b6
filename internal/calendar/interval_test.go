package calendar

import (
	"errors"
	"testing"
)

func TestIntervalValidate(t *testing.T) {
	for _, good := range []Interval{
		{Days, 1}, {Days, 36_500}, {Weeks, 1}, {Weeks, 5_200}, {Months, 1}, {Months, 1_200}, {Years, 1}, {Years, 100},
	} {
		if err := good.Validate(); err != nil {
			t.Errorf("%v: %v", good, err)
		}
	}
	for _, bad := range []Interval{
		{},
		{"", 1},
		{"hour", 1},
		{"Day", 1},
		{"months", 1},
		{Days, 0},
		{Months, -1},
		{Days, 36_501},
		{Weeks, 5_201},
		{Months, 1_201},
		{Years, 101},
		{Years, 1 << 62},
	} {
		if err := bad.Validate(); !errors.Is(err, ErrInterval) {
			t.Errorf("%v: got %v", bad, err)
		}
	}
}

func TestInvalidIntervalPanics(t *testing.T) {
	loc := mustLocation(t, "UTC")
	for name, call := range map[string]func(){
		"Period":   func() { Period(Anchor{}, Interval{Days, 0}, loc, 0) },
		"Boundary": func() { Boundary(Anchor{}, Interval{"hour", 1}, loc, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("an invalid interval gave a period")
				}
			}()
			call()
		})
	}
}
