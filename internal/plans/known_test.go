package plans

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"quotad/internal/quota/model"
)

// TestDocumentedNames: the API's document has the names that plans may use, and so have the errors
// for others.
func TestDocumentedNames(t *testing.T) {
	for _, c := range []struct {
		of    reflect.Type
		field string
		names []string
		said  string
	}{
		{reflect.TypeFor[model.Spec](), "Algorithm", slices.Sorted(slices.Values(model.AlgorithmNames())), func() string {
			_, bad := model.Compile(model.Spec{Name: "x", Algorithm: "none"})
			return bad.Error()
		}()},
		{reflect.TypeFor[Price](), "Model", slices.Sorted(slices.Values(PriceModels())), CheckPrice(&Price{Model: "none"}).Error()},
		{reflect.TypeFor[Price](), "LevelBy", slices.Sorted(slices.Values(LevelsBy())), ForMeter(&Price{LevelBy: "none"}, KindLevel).Error()},
	} {
		field, _ := c.of.FieldByName(c.field)
		enum := slices.Sorted(strings.SplitSeq(field.Tag.Get("enum"), ","))
		if !slices.Equal(enum, c.names) {
			t.Errorf("%s: the document has %q, plans may use %q", c.field, enum, c.names)
		}
		for _, name := range c.names {
			if !strings.Contains(c.said, name) {
				t.Errorf("%s: the error does not name %s: %s", c.field, name, c.said)
			}
		}
	}
}
