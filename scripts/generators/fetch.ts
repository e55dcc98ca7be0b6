// The types of openapi-typescript, with openapi-fetch, against the quotad of the environment.
import createClient from "openapi-fetch";
import type { components, paths } from "./generated/fetch.js";

declare const process: { env: Record<string, string> };

function must(fact: boolean, what: string): asserts fact {
  if (!fact) throw new Error(`openapi-typescript: ${what}`);
}

const quotad = createClient<paths>({ baseUrl: process.env.URL, headers: { Authorization: `Bearer ${process.env.KEY}` } });

const hit: components["schemas"]["HitRequest"] = { customer: "acme", meter: "requests" };
const admitted = await quotad.POST("/v1/hits", { body: hit });
must(admitted.data?.allowed === true, "a hit is admitted");
must(admitted.response.headers.get("RateLimit") !== null, "an admitted hit has RateLimit");

const refused = await quotad.POST("/v1/hits", { body: { ...hit, cost: 200 } });
must(refused.response.status === 429 && refused.error !== undefined, "a hit above the limit is refused");
must("limits" in refused.error && (refused.error.retry_after_ms ?? 0) > 0, "a refusal has its wait and limits");

const told = await quotad.POST("/v1/hits", { params: { query: { deny_status: "200" } }, body: { ...hit, cost: 200 } });
must(told.data?.allowed === false, "a refusal is told by 200, if the query says so");
must(told.data["violated-policies"].length === 1 && told.data.limits.length === 2, "a refusal that is told by 200 has its type");

const plans = await quotad.GET("/v1/plans", { params: { query: { limit: 1 } } });
must(plans.data?.items[0]?.limits[0]?.algorithm === "fixed_window", "a list has its items");

const invalid = await quotad.POST("/v1/hits", { body: { ...hit, cost: -1 } });
must(invalid.response.status === 422 && invalid.error?.type === "/problems/invalid", "a wrong cost is 422");
