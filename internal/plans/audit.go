package plans

import (
	"context"
	"encoding/json"
	"strings"
	"time"
)

// Actor identifies who makes a change.
type Actor struct {
	By      string // the id of an API key, ActorCommand or ActorStart
	Request string // the id of the request; "" outside of HTTP
}

// Actors that are not API keys.
const (
	ActorCommand = "command-line" // a command of quotad, such as keys create
	ActorStart   = "start"        // quotad serve, as it starts
)

type actorKey struct{}

// As returns a context whose changes are audited under the actor a. Changes without an actor are quotad's
// own and are not audited.
func As(ctx context.Context, a Actor) context.Context { return context.WithValue(ctx, actorKey{}, a) }

// Itself returns a context whose changes are quotad's own and are not audited.
func Itself(ctx context.Context) context.Context { return As(ctx, Actor{}) }

// ActorOf returns the actor of a context. acts is false if quotad itself makes the changes.
func ActorOf(ctx context.Context) (a Actor, acts bool) {
	a, _ = ctx.Value(actorKey{}).(Actor)
	return a, a.By != ""
}

// The actions of audited changes. Objects with a lifecycle have further actions.
const (
	AuditCreate = "create"
	AuditChange = "change"
	AuditDelete = "delete"
)

// AuditWrite returns the action of a write that creates an object or changes an existing object.
func AuditWrite(created bool) string {
	if created {
		return AuditCreate
	}
	return AuditChange
}

// Audited is a change that an actor made.
type Audited struct {
	Action   string
	Target   string // path of the changed object under /v1/, not percent-encoded, such as customers/acme/overrides/hourly
	Customer int64  // id of the customer whom the change concerns; 0 if it concerns no customer
	Scrubbed bool   // the entry contains no data about that customer
	// Before and After are the object before and after the change, as JSON. Each is nil if there is no state
	// to record.
	Before, After any
}

// Subject returns the first two segments of a target's path. They name the object to which the target
// belongs.
func Subject(target string) string {
	kind, rest, _ := strings.Cut(target, "/")
	if rest == "" {
		return kind
	}
	key, _, _ := strings.Cut(rest, "/")
	return kind + "/" + key
}

// maxAudited is the greatest stored size of Before and of After, in bytes.
const maxAudited = 8 << 10

// Documents encodes Before and After as JSON. If a document is too long, Documents replaces the values of
// its longest members with their sizes in bytes.
func (a *Audited) Documents() (before, after []byte, err error) {
	if before, err = auditDocument(a.Before); err != nil {
		return nil, nil, err
	}
	after, err = auditDocument(a.After)
	return before, after, err
}

func auditDocument(value any) ([]byte, error) {
	if value == nil {
		return nil, nil
	}
	whole, err := json.Marshal(value)
	if err != nil || len(whole) <= maxAudited {
		return whole, err
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(whole, &members); err != nil {
		return nil, err
	}
	for size := len(whole); size > maxAudited; {
		longest := ""
		for name, value := range members {
			if longest == "" || len(value) > len(members[longest]) {
				longest = name
			}
		}
		left, err := json.Marshal(map[string]int{"omitted_bytes": len(members[longest])})
		if err != nil || len(left) >= len(members[longest]) {
			return nil, err
		}
		size += len(left) - len(members[longest])
		members[longest] = left
	}
	return json.Marshal(members)
}

// AuditEntry is an audited change as it is shown.
type AuditEntry struct {
	ID            int64
	At            time.Time
	Actor         string
	ActorName     string // name of the API key; "" if the actor is not a key
	Action        string
	Target        string
	Before, After []byte // JSON; nil if there was no object
	Request       string
}

// AuditFilter selects audited changes. A zero field does not restrict the selection.
type AuditFilter struct {
	Actor string
	// Target is a path, which selects the changes of that path and of all paths below it. A target without a
	// slash is a key, which selects the changes of every object with that key.
	Target string
	// From and To are the bounds of the time range [From, To), µs. A nil bound is open.
	From, To *int64
}
