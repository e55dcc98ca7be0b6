package problem

import (
	"net/http"

	"quotad/internal/api/respond"
)

// The kinds of problems, as documented at /problems/{name}.
var (
	KindNotJSON = &Kind{
		Name: "not-json", Status: http.StatusBadRequest, Title: "Not JSON",
		Doc: "The body is empty, is not one well-formed JSON value, or is not UTF-8. Nothing was charged or stored. Send one JSON object.",
	}
	KindUnauthorized = &Kind{
		Name: "unauthorized", Status: http.StatusUnauthorized, Title: "No or wrong key",
		Doc: "Every route but the health and documentation ones needs the header Authorization: Bearer <key>, with a key that is neither revoked nor expired. Keys are made by POST /v1/keys or quotad keys create.",
	}
	KindWrongScope = &Kind{
		Name: "wrong-scope", Status: http.StatusForbidden, Title: "The key's scope does not allow this",
		Doc: "Scope backend hits and reads quota and usage; read does every GET of a customer, plan or meter; admin does everything. Use a key of a scope that allows this route.",
	}
	KindNotInPlan = &Kind{
		Name: "not-in-plan", Status: http.StatusForbidden, Title: "The meter is not in the customer's plan",
		Doc: "A plan admits the meters that its limits, prices or meters name. The meter is declared, but the customer's plan does not name it. Nothing was charged. GET the customer to see its plan, and write a version of that plan which names the meter.",
	}
	KindNotFound = &Kind{
		Name: "not-found", Status: http.StatusNotFound, Title: "Not found",
		Doc: "There is no such route, customer, meter, plan, version, limit, override, test clock, key, hit or reservation, or the customer is archived. Nothing was charged or stored. The detail says by which request it is made; all routes are in /docs.",
	}
	KindMethod = &Kind{
		Name: "method-not-allowed", Status: http.StatusMethodNotAllowed, Title: "Method not allowed",
		Doc: "The path exists, but not with this method. The header Allow says which it has.",
	}
	KindTimeout = &Kind{
		Name: "request-timeout", Status: http.StatusRequestTimeout, Title: "The request came too slowly",
		Doc: "The body did not arrive in time. Nothing was charged or stored.",
	}
	KindConflict = &Kind{
		Name: "conflict", Status: http.StatusConflict, Title: "In conflict with what is there",
		Doc: "What is there does not allow this, such as writing an archived customer, committing a reservation that was released, or reserving for a customer who has too many open on the meter. Nothing was charged or stored.",
	}
	KindPrecondition = &Kind{
		Name: "precondition-failed", Status: http.StatusPreconditionFailed, Title: "Changed in the meantime",
		Doc: "If-Match names another version than the present one: read it again, look at what changed, and write with its new ETag. Or If-None-Match: * was sent, and it exists already. Nothing was stored.",
	}
	KindTooLarge = &Kind{
		Name: "too-large", Status: http.StatusRequestEntityTooLarge, Title: "The body is too large",
		Doc: "A body may have 64 KiB, that of a batch 1 MiB, that of an import 1 GiB and each of its lines 64 KiB. Nothing was charged or stored, but for the lines of an import before it.",
	}
	KindMediaType = &Kind{
		Name: "unsupported-media-type", Status: http.StatusUnsupportedMediaType, Title: "The body is not declared as JSON",
		Doc: "Send Content-Type: application/json, of an import application/x-ndjson, in UTF-8 and without a Content-Encoding.",
	}
	KindInvalid = &Kind{
		Name: "invalid", Status: http.StatusUnprocessableEntity, Title: "Invalid request",
		Doc: "The member errors lists each wrong field, up to 100, by its path, such as limits[0].window, a query parameter by its name, with what to do about it; what it repeats of the request is cut behind 100 bytes. Nothing was charged or stored.",
	}
	KindIDReused = &Kind{
		Name: "id-reused", Status: http.StatusUnprocessableEntity, Title: "The id was used for another request",
		Doc: "An id stands for one request of one customer and one kind (a hit, a refund, a reservation, a line of an import): another meter, cost, attribute or ttl_ms under it is refused, as it may be a mistake that would be lost as a replay. Nothing was charged or stored. Send what was sent under the id then, or a new id.",
	}
	KindUnderWay = &Kind{
		Name: "under-way", Status: http.StatusConflict, Title: "A request with this id is under way", retry: true,
		Doc: "A request with the same id, sent here or to another node, did not end within the time that this one may wait. Nothing was done by this one. Send it again after Retry-After, with the same id: it is done once.",
	}
	KindDoesNotFit = &Kind{
		Name: "does-not-fit", Status: http.StatusConflict, Title: "The cost does not fit",
		Doc: "A reservation is committed with more than it holds, or after it had expired, and what goes beyond what is held does not fit the limits now. Nothing changed: what is held is held on. committable is the largest cost that could be committed now, and limits say why. Commit that or less, or the same later.",
	}
	KindPreconditionRequired = &Kind{
		Name: "precondition-required", Status: http.StatusPreconditionRequired, Title: "If-Match is required",
		Doc: "It exists already. GET it and send the ETag of that answer, quotes included, in the header If-Match, so that nobody's change is overwritten unseen. Nothing was stored.",
	}
	KindQuotaExceeded = &Kind{
		Name: "quota-exceeded", Status: http.StatusTooManyRequests, Title: "Quota exceeded",
		Doc: "At least one limit does not admit the hit now; violated-policies names them, retry_after_ms is the wait after which they would. Nothing was charged. The type is IANA's, " + respond.QuotaExceeded + ".",
	}
	KindInternal = &Kind{
		Name: "internal", Status: http.StatusInternalServerError, Title: "Internal error",
		Doc: "A defect of quotad. Its log has the cause, with the request's method and path. Look at what there is before you send the request again, and report it if it stays.",
	}
	KindBusy = &Kind{
		Name: "too-busy", Status: http.StatusServiceUnavailable, Title: "Too much is waiting", retry: true,
		Doc: "Too many requests wait for the database, the node works on too many batches or imports, or this request waited too long. Nothing was charged or stored. Send it again after Retry-After.",
	}
	KindUnavailable = &Kind{
		Name: "database-unavailable", Status: http.StatusServiceUnavailable, Title: "The database is out of reach", retry: true,
		Doc: "The database cannot be reached and a limit says on_outage: deny, or the answer is not in memory. Nothing was charged or stored. Send it again after Retry-After.",
	}
	KindNoSession = &Kind{
		Name: "database-refuses", Status: http.StatusServiceUnavailable, Title: "The database does not serve this node", retry: true,
		Doc: "The database is there, but refuses this node: its login, a right, a table or a free connection is missing, its disk is full, or its clock cannot be used. That is no outage, so nothing is let in by on_outage. Nothing was charged or stored. quotad's log and /readyz say what is wrong; until an operator puts it right each request fails alike.",
	}
	KindOutcomeUnknown = &Kind{
		Name: "outcome-unknown", Status: http.StatusServiceUnavailable, Title: "The outcome is unknown", retry: true,
		Doc: "The connection to the database broke after the request was sent to it. It was done once or not at all, and nobody can know which. Sent again with the same id it is settled, charged once; the commit or release of a reservation needs no id for that. Without an id GET what it was to change first: for a hit the customer's quota or usage, for a write the thing itself.",
	}
	KindStopping = &Kind{
		Name: "stopping", Status: http.StatusServiceUnavailable, Title: "This node is stopping", retry: true,
		Doc: "The node that was asked is shutting down. Nothing was charged or stored. Send it again, to another node.",
	}
	KindNotReady = &Kind{
		Name: "not-ready", Status: http.StatusServiceUnavailable, Title: "Not ready", retry: true,
		Doc: "The node has not reached its database yet, or is stopping. Load balancers should not send it requests.",
	}
)

// Kinds are all kinds of problems.
var Kinds = []*Kind{
	KindNotJSON, KindUnauthorized, KindWrongScope, KindNotInPlan, KindNotFound, KindMethod, KindTimeout, KindConflict,
	KindPrecondition, KindTooLarge, KindMediaType, KindInvalid, KindIDReused, KindUnderWay, KindDoesNotFit, KindPreconditionRequired, KindQuotaExceeded,
	KindInternal, KindBusy, KindUnavailable, KindNoSession, KindOutcomeUnknown, KindStopping, KindNotReady,
}
