package rating_test

import (
	"fmt"
	"math/big"
	"path/filepath"
	"testing"

	"quotad/internal/billing/rating"
	"quotad/internal/plans"
	"quotad/internal/testkit/vectors"
)

// ratingCase is one case of a vector file.
type ratingCase struct {
	Price       plans.Price `json:"price"`
	Quantity    int64       `json:"quantity"`
	Exponent    int         `json:"currency_exponent"`
	AmountMinor int64       `json:"amount_minor"`
	Exact       string      `json:"exact"`
}

// checkRatingCase is the runner: nil when the package agrees with the case.
func checkRatingCase(c ratingCase) error {
	price, err := rating.Compile(c.Price, c.Exponent)
	if err != nil {
		return err
	}
	line, err := price.Rate(c.Quantity, rating.Span{})
	if err != nil {
		return err
	}
	got, gotOK := new(big.Rat).SetString(line.Exact)
	want, wantOK := new(big.Rat).SetString(c.Exact) // may be written as 1E+1
	if line.AmountMinor != c.AmountMinor || !gotOK || !wantOK || got.Cmp(want) != 0 {
		return fmt.Errorf("got %d, exactly %s, want %d, exactly %s", line.AmountMinor, line.Exact, c.AmountMinor, c.Exact)
	}
	return nil
}

func TestVectorsRating(t *testing.T) {
	vectors.Each(t, "rating", func(t *testing.T, path string) {
		cases, err := vectors.Cases[ratingCase](path)
		if err != nil {
			t.Fatal(err)
		}
		for i, c := range cases {
			if err := checkRatingCase(c); err != nil {
				t.Errorf("case %d (%s, %d): %v", i, c.Price.Model, c.Quantity, err)
			}
		}
	})
}

// A runner that passes everything would pass the vectors, too.
func TestVectorsRatingRunnerNoticesCorruption(t *testing.T) {
	cases, err := vectors.Cases[ratingCase](filepath.Join("testdata", "vectors", "rating", "models.json"))
	if err != nil {
		t.Fatal(err)
	}
	corruptions := map[string]func(*ratingCase){
		"model":    func(c *ratingCase) { c.Price.Model = "free" },
		"exponent": func(c *ratingCase) { c.Exponent = 5 },
		"amount":   func(c *ratingCase) { c.AmountMinor++ },
		"exact":    func(c *ratingCase) { c.Exact = "0.1" + c.Exact },
		"no exact": func(c *ratingCase) { c.Exact = "" },
	}
	for name, corrupt := range corruptions {
		t.Run(name, func(t *testing.T) {
			for i, c := range cases {
				corrupt(&c)
				if checkRatingCase(c) == nil {
					t.Errorf("case %d passes with a wrong %s", i, name)
				}
			}
		})
	}
}
