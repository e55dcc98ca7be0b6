package oracle

import (
	"encoding/json"
	"os"
	"testing"
	"time"
)

func read(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// The oracle is held against the vectors, as the program is.
func TestOracleMeetsTheVectorsOfRating(t *testing.T) {
	var file struct {
		Cases []struct {
			Price    Price
			Quantity int64
			Exponent int   `json:"currency_exponent"`
			Minor    int64 `json:"amount_minor"`
			Exact    string
		}
	}
	read(t, "../../billing/rating/testdata/vectors/rating/models.json", &file)
	for _, c := range file.Cases {
		minor := c.Price.Rate(c.Quantity, Share{0, 1, 0, 1}, c.Exponent).Minor
		if exact, _ := c.Price.exact(whole(max(0, c.Quantity-c.Price.Included))); minor != c.Minor || exact.Cmp(decimal(c.Exact)) != 0 {
			t.Errorf("%+v: %d, %s", c, minor, exact)
		}
	}
}

func TestOracleMeetsTheVectorsOfPeriods(t *testing.T) {
	var file struct {
		Cases []struct {
			Anchor         string `json:"anchor_local"`
			Unit           string
			Count          int
			Timezone       string
			At, Start, End time.Time
			Index          int
		}
	}
	read(t, "../../calendar/testdata/vectors/periods/anchors.json", &file)
	for _, c := range file.Cases {
		r := Rhythm{c.Anchor, c.Timezone, c.Unit, c.Count}
		from, to := r.Around(c.At.UnixMicro())
		if from != c.Start.UnixMicro() || to != c.End.UnixMicro() || r.Boundary(c.Index) != from {
			t.Errorf("%+v: %s to %s", c, utc(from), utc(to))
		}
	}
}
