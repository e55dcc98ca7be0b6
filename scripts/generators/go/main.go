// Command generators calls a quotad by the client that oapi-codegen makes of the OpenAPI document.
package main

import (
	"context"
	"log"
	"net/http"
	"os"
	"strings"
	"time"

	"generators/generated"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	quotad, err := generated.NewClientWithResponses(os.Getenv("URL"), generated.WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
		r.Header.Set("Authorization", "Bearer "+os.Getenv("KEY"))
		return nil
	}))
	must(err == nil, "a client", err)

	hit := generated.HitRequest{Customer: "acme", Meter: "requests"}
	admitted, err := quotad.HitsCreateWithResponse(ctx, nil, hit)
	must(err == nil && admitted.JSON200 != nil, "a hit is answered with 200", err)
	decision, err := admitted.JSON200.AsDecision()
	must(err == nil && bool(decision.Allowed), "a hit is admitted", err)
	must(admitted.Headers200.RateLimit != nil, "an admitted hit has RateLimit", err)

	hit.Cost = new(int64(200))
	refused, err := quotad.HitsCreateWithResponse(ctx, nil, hit)
	must(err == nil && refused.ApplicationproblemJSON429 != nil, "a hit above the limit is refused", err)
	refusal, err := refused.ApplicationproblemJSON429.AsRefusal()
	must(err == nil && len(refusal.Limits) == 2 && refusal.RetryAfterMs != nil && *refusal.RetryAfterMs > 0 && strings.HasSuffix(refusal.Type, "quota-exceeded"), "a refusal has its wait and limits", err)

	told, err := quotad.HitsCreateWithResponse(ctx, &generated.HitsCreateParams{DenyStatus: new(generated.HitsCreateParamsDenyStatusN200)}, hit)
	must(err == nil && told.ApplicationproblemJSON200 != nil, "a refusal is told by 200, if the query says so", err)
	refusal = *told.ApplicationproblemJSON200
	must(!bool(refusal.Allowed) && len(refusal.ViolatedPolicies) == 1, "a refusal that is told by 200 has its type", err)

	plans, err := quotad.PlansListWithResponse(ctx, &generated.PlansListParams{Limit: new(1)})
	must(err == nil && plans.JSON200 != nil && plans.JSON200.Items[0].Limits[0].Algorithm == "fixed_window", "a list has its items", err)

	hit.Cost = new(int64(-1))
	invalid, err := quotad.HitsCreateWithResponse(ctx, nil, hit)
	must(err == nil && invalid.ApplicationproblemJSON422 != nil && invalid.ApplicationproblemJSON422.Type == "/problems/invalid", "a wrong cost is 422", err)
}

func must(fact bool, what string, err error) {
	if !fact {
		log.Fatalf("oapi-codegen: %s (%v)", what, err)
	}
}
