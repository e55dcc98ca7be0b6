// The SDK of @hey-api/openapi-ts against the quotad of the environment.
import { client } from "./generated/sdk/client.gen.js";
import { hitsCreate, plansList } from "./generated/sdk/index.js";

declare const process: { env: Record<string, string> };

function must(fact: boolean, what: string): asserts fact {
  if (!fact) throw new Error(`@hey-api/openapi-ts: ${what}`);
}

client.setConfig({ baseUrl: process.env.URL as `http://${string}`, auth: () => process.env.KEY });

const body = { customer: "acme", meter: "requests" };
const admitted = await hitsCreate({ body });
must(admitted.data?.allowed === true, "a hit is admitted");

const refused = await hitsCreate({ body: { ...body, cost: 200 } });
must(refused.response?.status === 429 && refused.error !== undefined, "a hit above the limit is refused");
must("limits" in refused.error && (refused.error.retry_after_ms ?? 0) > 0, "a refusal has its wait and limits");

const told = await hitsCreate({ query: { deny_status: "200" }, body: { ...body, cost: 200 } });
must(told.data?.allowed === false, "a refusal is told by 200, if the query says so");
must(told.data["violated-policies"].length === 1 && told.data.limits.length === 2, "a refusal that is told by 200 has its type");

const plans = await plansList({ query: { limit: 1 } });
must(plans.data?.items[0]?.limits[0]?.algorithm === "fixed_window", "a list has its items");

const invalid = await hitsCreate({ body: { ...body, cost: -1 } });
must(invalid.response?.status === 422 && invalid.error?.type === "/problems/invalid", "a wrong cost is 422");
