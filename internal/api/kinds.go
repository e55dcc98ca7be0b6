package api

import "net/http"

// The kinds of problems, as documented at /problems/{name}.
var (
	kindNotJSON = &kind{
		name: "not-json", status: http.StatusBadRequest, title: "Not JSON",
		doc: "The body is empty, is not one well-formed JSON value, or is not UTF-8. Nothing was charged or stored. Send one JSON object.",
	}
	kindUnauthorized = &kind{
		name: "unauthorized", status: http.StatusUnauthorized, title: "No or wrong key",
		doc: "Every route but the health and documentation ones needs the header Authorization: Bearer <key>, with a key that is neither revoked nor expired. Keys are made by POST /v1/keys or quotad keys create.",
	}
	kindWrongScope = &kind{
		name: "wrong-scope", status: http.StatusForbidden, title: "The key's scope does not allow this",
		doc: "Scope backend hits and reads quota and usage; read does every GET of a customer, plan or meter; admin does everything. Use a key of a scope that allows this route.",
	}
	kindNotInPlan = &kind{
		name: "not-in-plan", status: http.StatusForbidden, title: "The meter is not in the customer's plan",
		doc: "A plan admits the meters that its limits, prices or meters name. The meter is declared, but the customer's plan does not name it. Nothing was charged. GET the customer to see its plan, and write a version of that plan which names the meter.",
	}
	kindNotFound = &kind{
		name: "not-found", status: http.StatusNotFound, title: "Not found",
		doc: "There is no such route, customer, meter, plan, version, limit, override, test clock, key, hit or reservation, or the customer is archived. Nothing was charged or stored. The detail says by which request it is made; all routes are in /docs.",
	}
	kindMethod = &kind{
		name: "method-not-allowed", status: http.StatusMethodNotAllowed, title: "Method not allowed",
		doc: "The path exists, but not with this method. The header Allow says which it has.",
	}
	kindTimeout = &kind{
		name: "request-timeout", status: http.StatusRequestTimeout, title: "The request came too slowly",
		doc: "The body did not arrive in time. Nothing was charged or stored.",
	}
	kindConflict = &kind{
		name: "conflict", status: http.StatusConflict, title: "In conflict with what is there",
		doc: "What is there does not allow this, such as writing an archived customer, committing a reservation that was released, or reserving for a customer who has too many open on the meter. Nothing was charged or stored.",
	}
	kindPrecondition = &kind{
		name: "precondition-failed", status: http.StatusPreconditionFailed, title: "Changed in the meantime",
		doc: "If-Match names another version than the present one: read it again, look at what changed, and write with its new ETag. Or If-None-Match: * was sent, and it exists already. Nothing was stored.",
	}
	kindTooLarge = &kind{
		name: "too-large", status: http.StatusRequestEntityTooLarge, title: "The body is too large",
		doc: "A body may have 64 KiB, that of a batch 1 MiB, that of an import 1 GiB and each of its lines 64 KiB. Nothing was charged or stored, but for the lines of an import before it.",
	}
	kindMediaType = &kind{
		name: "unsupported-media-type", status: http.StatusUnsupportedMediaType, title: "The body is not declared as JSON",
		doc: "Send Content-Type: application/json, of an import application/x-ndjson, in UTF-8 and without a Content-Encoding.",
	}
	kindInvalid = &kind{
		name: "invalid", status: http.StatusUnprocessableEntity, title: "Invalid request",
		doc: "The member errors lists each wrong field, up to 100, by its path, such as limits[0].window, a query parameter by its name, with what to do about it; what it repeats of the request is cut behind 100 bytes. Nothing was charged or stored.",
	}
	kindIDReused = &kind{
		name: "id-reused", status: http.StatusUnprocessableEntity, title: "The id was used for another request",
		doc: "An id stands for one request of one customer and one kind (a hit, a refund, a reservation, a line of an import): another meter, cost, attribute or ttl_ms under it is refused, as it may be a mistake that would be lost as a replay. Nothing was charged or stored. Send what was sent under the id then, or a new id.",
	}
	kindUnderWay = &kind{
		name: "under-way", status: http.StatusConflict, title: "A request with this id is under way", retry: true,
		doc: "A request with the same id, sent here or to another node, did not end within the time that this one may wait. Nothing was done by this one. Send it again after Retry-After, with the same id: it is done once.",
	}
	kindDoesNotFit = &kind{
		name: "does-not-fit", status: http.StatusConflict, title: "The cost does not fit",
		doc: "A reservation is committed with more than it holds, or after it had expired, and what goes beyond what is held does not fit the limits now. Nothing changed: what is held is held on. committable is the largest cost that could be committed now, and limits say why. Commit that or less, or the same later.",
	}
	kindPreconditionRequired = &kind{
		name: "precondition-required", status: http.StatusPreconditionRequired, title: "If-Match is required",
		doc: "It exists already. GET it and send the ETag of that answer, quotes included, in the header If-Match, so that nobody's change is overwritten unseen. Nothing was stored.",
	}
	kindQuotaExceeded = &kind{
		name: "quota-exceeded", status: http.StatusTooManyRequests, title: "Quota exceeded",
		doc: "At least one limit does not admit the hit now; violated-policies names them, retry_after_ms is the wait after which they would. Nothing was charged. The type is IANA's, " + quotaExceeded + ".",
	}
	kindInternal = &kind{
		name: "internal", status: http.StatusInternalServerError, title: "Internal error",
		doc: "A defect of quotad. Its log has the cause, with the request's method and path. Look at what there is before you send the request again, and report it if it stays.",
	}
	kindBusy = &kind{
		name: "too-busy", status: http.StatusServiceUnavailable, title: "Too much is waiting", retry: true,
		doc: "Too many requests wait for the database, the node works on too many batches or imports, or this request waited too long. Nothing was charged or stored. Send it again after Retry-After.",
	}
	kindUnavailable = &kind{
		name: "database-unavailable", status: http.StatusServiceUnavailable, title: "The database is out of reach", retry: true,
		doc: "The database cannot be reached and a limit says on_outage: deny, or the answer is not in memory. Nothing was charged or stored. Send it again after Retry-After.",
	}
	kindNoSession = &kind{
		name: "database-refuses", status: http.StatusServiceUnavailable, title: "The database does not serve this node", retry: true,
		doc: "The database is there, but refuses this node: its login, a right, a table or a free connection is missing, its disk is full, or its clock cannot be used. That is no outage, so nothing is let in by on_outage. Nothing was charged or stored. quotad's log and /readyz say what is wrong; until an operator puts it right each request fails alike.",
	}
	kindOutcomeUnknown = &kind{
		name: "outcome-unknown", status: http.StatusServiceUnavailable, title: "The outcome is unknown", retry: true,
		doc: "The connection to the database broke after the request was sent to it. It was done once or not at all, and nobody can know which. Sent again with the same id it is settled, charged once; the commit or release of a reservation needs no id for that. Without an id GET what it was to change first: for a hit the customer's quota or usage, for a write the thing itself.",
	}
	kindStopping = &kind{
		name: "stopping", status: http.StatusServiceUnavailable, title: "This node is stopping", retry: true,
		doc: "The node that was asked is shutting down. Nothing was charged or stored. Send it again, to another node.",
	}
	kindNotReady = &kind{
		name: "not-ready", status: http.StatusServiceUnavailable, title: "Not ready", retry: true,
		doc: "The node has not reached its database yet, or is stopping. Load balancers should not send it requests.",
	}
)

// kinds are all kinds of problems.
var kinds = []*kind{
	kindNotJSON, kindUnauthorized, kindWrongScope, kindNotInPlan, kindNotFound, kindMethod, kindTimeout, kindConflict,
	kindPrecondition, kindTooLarge, kindMediaType, kindInvalid, kindIDReused, kindUnderWay, kindDoesNotFit, kindPreconditionRequired, kindQuotaExceeded,
	kindInternal, kindBusy, kindUnavailable, kindNoSession, kindOutcomeUnknown, kindStopping, kindNotReady,
}
