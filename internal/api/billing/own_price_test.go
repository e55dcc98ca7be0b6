package billing

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"quotad/client"
	"quotad/internal/plans"
)

// TestOwnPriceModels: a price of a customer's own may have each model that a plan's may have.
func TestOwnPriceModels(t *testing.T) {
	t.Parallel()
	field, _ := reflect.TypeFor[client.OwnPriceRequest]().FieldByName("Model")
	if enum := strings.Split(field.Tag.Get("enum"), ","); !slices.Equal(enum, plans.PriceModels()) {
		t.Errorf("the document has %q, plans may use %q", enum, plans.PriceModels())
	}
}
