package problem

import (
	"net/http"
	"strings"

	"quotad/internal/api/respond"
)

// The kinds of problems, as documented at /problems/{name}.
var (
	KindNotJSON = &Kind{
		Name: "not-json", Status: http.StatusBadRequest, Title: "Not JSON",
		Doc: text(
			"The body is not one well-formed JSON value in UTF-8.",
			"An empty body is not JSON, either.",
			"Nothing was charged or stored.",
			"Send one JSON object.",
		),
	}
	KindUnauthorized = &Kind{
		Name: "unauthorized", Status: http.StatusUnauthorized, Title: "No or wrong key",
		Doc: text(
			"The request has no API key that is valid.",
			"Every operation but those of health and documentation needs the header `Authorization: Bearer <key>`.",
			"The key must be neither revoked nor expired.",
			"Keys are made by `POST /v1/keys` or `quotad keys create`.",
		),
	}
	KindWrongScope = &Kind{
		Name: "wrong-scope", Status: http.StatusForbidden, Title: "The key's scope does not allow this",
		Doc: text(
			"The scope of the API key does not allow this operation.",
			"`backend` may call the operations that charge, and read a customer's quota and usage.",
			"`read` may call every `GET` of a customer, plan or meter.",
			"`admin` may call every operation.",
			"Use a key of a scope that allows this operation.",
		),
	}
	KindNotInPlan = &Kind{
		Name: "not-in-plan", Status: http.StatusForbidden, Title: "The meter is not in the customer's plan",
		Doc: text(
			"The meter is declared, but the customer's plan does not name the meter.",
			"A plan admits the meters that its limits, prices or meters name.",
			"Nothing was charged.",
			"`GET` the customer to see the plan. Then write a version of the plan that names the meter.",
		),
	}
	KindSuspended = &Kind{
		Name: "suspended", Status: http.StatusForbidden, Title: "The customer is suspended",
		Doc: text(
			"An admin has suspended the customer.",
			"Hits and reservations are refused until the suspension ends.",
			"Commits, releases, refunds and reads go on.",
			"Nothing was charged.",
			"The customer's quota says since when, and why.",
			"`DELETE /v1/customers/{key}/suspension` ends the suspension.",
		),
	}
	KindEnded = &Kind{
		Name: "ended", Status: http.StatusForbidden, Title: "The customer's subscription has ended",
		Doc: text(
			"The hit or reservation came at `ends_at` of the customer's billing, or later.",
			"The account says `\"after_end\":\"block\"`.",
			"Commits, releases, refunds and reads go on.",
			"Nothing was charged.",
			"To go on, `PUT` the customer's billing without `ends_at`. Billing begins again then.",
			"With `\"after_end\":\"free\"` usage goes on and is not billed.",
		),
	}
	KindNotFound = &Kind{
		Name: "not-found", Status: http.StatusNotFound, Title: "Not found",
		Doc: text(
			"What the request names does not exist.",
			"This may be a route, customer, meter, plan, version, limit, override, test clock, key, hit or reservation.",
			"Or the customer is archived.",
			"Nothing was charged or stored.",
			"The `detail` says which request makes what is missing.",
			"All routes are in `/docs`.",
		),
	}
	KindMethod = &Kind{
		Name: "method-not-allowed", Status: http.StatusMethodNotAllowed, Title: "Method not allowed",
		Doc: text(
			"The path exists, but not with this method.",
			"The header `Allow` lists the methods that the path has.",
		),
	}
	KindTimeout = &Kind{
		Name: "request-timeout", Status: http.StatusRequestTimeout, Title: "The request came too slowly",
		Doc: text(
			"The body did not arrive in time.",
			"Nothing was charged or stored.",
		),
	}
	KindConflict = &Kind{
		Name: "conflict", Status: http.StatusConflict, Title: "In conflict with what is there",
		Doc: text(
			"The present state does not allow this request.",
			"An archived customer cannot be written.",
			"A reservation that was released cannot be committed.",
			"A customer can have only so many open reservations on a meter.",
			"There are further cases. The `detail` names the one.",
			"Nothing was charged or stored.",
		),
	}
	KindPrecondition = &Kind{
		Name: "precondition-failed", Status: http.StatusPreconditionFailed, Title: "Changed in the meantime",
		Doc: text(
			"The precondition of the write does not hold.",
			"With `If-Match`: the header names another version than the present one. Read the present version, look at what changed, and write with its new `ETag`.",
			"With `If-None-Match: *`: what the request would create exists already.",
			"Nothing was stored.",
		),
	}
	KindTooLarge = &Kind{
		Name: "too-large", Status: http.StatusRequestEntityTooLarge, Title: "The body is too large",
		Doc: text(
			"The body is too large.",
			"A body may have 64 KiB.",
			"A batch may have 1 MiB.",
			"An import may have 1 GiB, and each of its lines 64 KiB.",
			"Nothing was charged or stored, except for lines of an import before the one that is too large.",
		),
	}
	KindMediaType = &Kind{
		Name: "unsupported-media-type", Status: http.StatusUnsupportedMediaType, Title: "The body is not declared as JSON",
		Doc: text(
			"The body is not declared as JSON.",
			"Send `Content-Type: application/json`.",
			"Send an import with `Content-Type: application/x-ndjson`.",
			"The body must be in UTF-8 and without a `Content-Encoding`.",
		),
	}
	KindInvalid = &Kind{
		Name: "invalid", Status: http.StatusUnprocessableEntity, Title: "Invalid request",
		Doc: text(
			"A field or parameter of the request is wrong.",
			"`errors` lists each wrong field, up to 100, and what to do about it.",
			"A field is named by its path, such as `limits[0].window`. A query parameter is named by its name.",
			"What `errors` repeats of the request is cut after 100 bytes.",
			"Nothing was charged or stored.",
		),
	}
	KindIDReused = &Kind{
		Name: "id-reused", Status: http.StatusUnprocessableEntity, Title: "The id was used for another request",
		Doc: text(
			"The idempotency key was used for another request before.",
			"An id stands for one request of one customer and one kind.",
			"The kinds are hits, refunds, reservations, adjustments and lines of an import.",
			"Another meter, cost, attribute or `ttl_ms` under the id is refused. It may be a mistake, and would be lost as a replay.",
			"Nothing was charged or stored.",
			"Send the request that was sent under the id before, or send a new id.",
		),
	}
	KindRefunded = &Kind{
		Name: "refunded", Status: http.StatusConflict, Title: "The hit of this id was refunded in full",
		Doc: text(
			"The hit was admitted under this id, and all of it was given back since.",
			"So it is neither admitted again, nor charged again.",
			"Nothing was charged.",
			"To consume units again, send a hit with a new id.",
		),
	}
	KindUnderWay = &Kind{
		Name: "under-way", Status: http.StatusConflict, Title: "A request with this id is under way", retry: true,
		Doc: text(
			"A request with the same id did not end within the time that this request may wait.",
			"The other request may have been sent to another node.",
			"This request did nothing.",
			"Send the request again after `Retry-After`, with the same id. It is done once.",
		),
	}
	KindDoesNotFit = &Kind{
		Name: "does-not-fit", Status: http.StatusConflict, Title: "The cost does not fit",
		Doc: text(
			"The units of a commit beyond what the reservation holds do not fit the limits now.",
			"The commit has a larger cost than the reservation, or the reservation had expired.",
			"Nothing changed. The reservation holds what it held.",
			"`committable` is the largest cost that could be committed now. `limits` say why.",
			"Commit `committable` or less, or commit the same cost later.",
		),
	}
	KindArchived = &Kind{
		Name: "archived", Status: http.StatusConflict, Title: "Usage of that time is archived",
		Doc: text(
			"The request needs usage of months that an operator has taken out of the database (`quotad archive`).",
			"Such usage is not adjusted, imported, refunded or billed again, and no test clock goes back to it.",
			"Nothing was charged or stored.",
			"Invoices of that time stay as they are, and so do their documents. A credit note corrects one.",
			"Where it is a refund or an adjustment, make one of the running billing period.",
		),
	}
	KindPreconditionRequired = &Kind{
		Name: "precondition-required", Status: http.StatusPreconditionRequired, Title: "If-Match is required",
		Doc: text(
			"What the request writes exists already, so the header `If-Match` is required.",
			"`GET` it, and send the `ETag` of that answer in `If-Match`, quotes included.",
			"So nobody's change is overwritten unseen.",
			"Nothing was stored.",
		),
	}
	KindQuotaExceeded = &Kind{
		Name: "quota-exceeded", Status: http.StatusTooManyRequests, Title: "Quota exceeded",
		Doc: text(
			"At least one limit does not admit the hit now.",
			"`violated-policies` names the limits that refuse.",
			"`retry_after_ms` is the wait after which these limits would admit the hit.",
			"Nothing was charged.",
			"The type is IANA's: "+respond.QuotaExceeded+".",
		),
	}
	KindTooManyFailures = &Kind{
		Name: "too-many-failures", Status: http.StatusTooManyRequests, Title: "Too many wrong keys",
		Doc: text(
			"Keys that are not known came from the client's address too often.",
			"All clients behind one proxy, or in one IPv6 network of 64 bits, have one address.",
			"A key that the node knows is let in meanwhile.",
			"The key was not looked up. Nothing was charged or stored.",
			"Send the request again after `Retry-After`, with a key that is valid.",
			"This is no customer's quota.",
		),
	}
	KindInternal = &Kind{
		Name: "internal", Status: http.StatusInternalServerError, Title: "Internal error",
		Doc: text(
			"quotad has a defect.",
			"quotad's log has the cause, with the request's method and path.",
			"Look at what is stored before you send the request again.",
			"Report the defect if it stays.",
		),
	}
	KindBusy = &Kind{
		Name: "too-busy", Status: http.StatusServiceUnavailable, Title: "Too much is waiting", retry: true,
		Doc: text(
			"The node has no room for the request now, or the request waited too long.",
			"Too many requests wait for the database, or too many batches or imports are under way.",
			"The API key has its share of these, while others find room. Send less at once.",
			"Bodies and answers take all of their memory.",
			"Or a customer's hits bring too many new values of attributes in a second.",
			"The `detail` names the one. Nothing was charged or stored.",
			"Send the request again after `Retry-After`.",
		),
	}
	KindUnavailable = &Kind{
		Name: "database-unavailable", Status: http.StatusServiceUnavailable, Title: "The database is out of reach", retry: true,
		Doc: text(
			"The database cannot be reached.",
			"A limit says `on_outage: deny`, or the answer is not in memory.",
			"Nothing was charged or stored.",
			"Send the request again after `Retry-After`.",
		),
	}
	KindNoSession = &Kind{
		Name: "database-refuses", Status: http.StatusServiceUnavailable, Title: "The database does not serve this node", retry: true,
		Doc: text(
			"The database is there, but does not serve this node.",
			"The node's login, a right, a table or a free connection is missing.",
			"Or the database's disk is full, or its clock cannot be used.",
			"This is no outage, so `on_outage` lets nothing in.",
			"Nothing was charged or stored.",
			"quotad's log and `/readyz` say what is wrong.",
			"Each request fails alike until an operator puts it right.",
		),
	}
	KindReadOnly = &Kind{
		Name: "database-read-only", Status: http.StatusServiceUnavailable, Title: "The database is read only", retry: true,
		Doc: text(
			"The database is there, but takes no writes (SQLSTATE 25006).",
			"It is a standby that nobody promoted, or somebody set it to be read only.",
			"This is no outage, so `on_outage` lets nothing in.",
			"Nothing was charged or stored.",
			"Each request that writes fails alike until an operator puts it right.",
		),
	}
	KindOutcomeUnknown = &Kind{
		Name: "outcome-unknown", Status: http.StatusServiceUnavailable, Title: "The outcome is unknown", retry: true,
		Doc: text(
			"The connection to the database broke after the request was sent to the database.",
			"The request was done once or not at all. Nobody can know which.",
			"Send a request with an id again, with the same id. The request is then settled, and charged once.",
			"The commit or release of a reservation needs no id for that.",
			"Without an id, look first. After a hit, `GET` the customer's quota or usage. After a write, `GET` what it writes.",
		),
	}
	KindStopping = &Kind{
		Name: "stopping", Status: http.StatusServiceUnavailable, Title: "This node is stopping", retry: true,
		Doc: text(
			"The node is shutting down.",
			"Nothing was charged or stored.",
			"Send the request again, to another node.",
		),
	}
	KindNotReady = &Kind{
		Name: "not-ready", Status: http.StatusServiceUnavailable, Title: "Not ready", retry: true,
		Doc: text(
			"The node has not reached its database yet, or is stopping.",
			"Load balancers should not send it requests.",
		),
	}
)

// text returns a description in Markdown: one sentence, followed by a list of further facts.
func text(what string, more ...string) string {
	return what + "\n\n- " + strings.Join(more, "\n- ")
}

// Kinds lists all kinds of problems.
var Kinds = []*Kind{
	KindNotJSON, KindUnauthorized, KindWrongScope, KindNotInPlan, KindSuspended, KindEnded, KindNotFound, KindMethod, KindTimeout, KindConflict,
	KindPrecondition, KindTooLarge, KindMediaType, KindInvalid, KindIDReused, KindRefunded, KindUnderWay, KindDoesNotFit, KindArchived,
	KindPreconditionRequired, KindQuotaExceeded, KindTooManyFailures,
	KindInternal, KindBusy, KindUnavailable, KindNoSession, KindReadOnly, KindOutcomeUnknown, KindStopping, KindNotReady,
}
