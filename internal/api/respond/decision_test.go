package respond

import (
	"testing"

	"quotad/internal/quota/model"
)

// A refusal says which limits it is by, and whether waiting helps.
func TestWhyARefusal(t *testing.T) {
	bucket := &model.Limit{Name: "bucket", Algorithm: model.TokenBucket, Limit: 1000, Burst: 20}
	seats := &model.Limit{Name: "seats", Algorithm: model.Allocation, Limit: 10}
	closed := &model.Limit{Name: "closed", Algorithm: model.FixedWindow}
	soft := &model.Limit{Name: "soft", Algorithm: model.FixedWindow, Mode: model.Soft}
	for want, c := range map[string]struct {
		cost, wait int64
		views      []model.View
	}{
		"Limit bucket admits at most 3 now. The hit costs 4: send it again in 2 s.": {
			4, 2 * second,
			[]model.View{{Limit: soft}, {Limit: bucket, Remaining: 3, RetryAfter: 2 * second}},
		},
		"Limit bucket is used up. The hit costs 20: send it again in 2 s.": {
			20, 2 * second,
			[]model.View{{Limit: bucket, RetryAfter: 2 * second}},
		},
		"Limit bucket never admits more than 20 at once. The hit costs 21: split it, or raise the limit.": {
			21, model.Never,
			[]model.View{{Limit: bucket, Remaining: 3, RetryAfter: model.Never}},
		},
		"Limit bucket is used up. Limit seats never admits more than 10 at once. The hit costs 11: split it, or raise the limit.": {
			11, model.Never,
			[]model.View{{Limit: bucket, RetryAfter: 5}, {Limit: seats, RetryAfter: model.Never}},
		},
		"Limit seats is used up. The hit costs 1 and will not be admitted by waiting.": {
			1, model.Never,
			[]model.View{{Limit: seats, RetryAfter: model.Never}},
		},
		"Limit closed is 0 and admits nothing. The hit costs 1 and will not be admitted by waiting.": {
			1, model.Never,
			[]model.View{{Limit: closed, RetryAfter: model.Never}},
		},
		"This hit would be admitted, but another one of its atomic batch is refused: none was charged.": {
			1, 0,
			[]model.View{{Limit: seats, Remaining: 1}},
		},
	} {
		if got := string(appendWhy(nil, &Subject{Cost: c.cost}, c.views, c.wait)); got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
}

func TestSpans(t *testing.T) {
	for seconds, want := range map[int64]string{
		1: "1 s", 59: "59 s", 60: "1 min", 61: "1 min 1 s", 431: "7 min 11 s", 3599: "59 min 59 s", 3600: "1 h",
		3601: "1 h 1 min", 4320: "1 h 12 min", 4321: "1 h 13 min", 86399: "24 h", 86400: "1 d", 86401: "1 d 1 h",
		2 * 86400: "2 d", 30*86400 + 4*3600: "30 d 4 h", 9_223_372_036_855: "106751991 d 5 h",
	} {
		if got := string(appendSpan(nil, seconds)); got != want {
			t.Errorf("%d s: %q, not %q", seconds, got, want)
		}
	}
	if got := string(appendSpan([]byte("in "), 3)); got != "in 3 s" {
		t.Error(got)
	}
}
