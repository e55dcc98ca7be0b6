package plans

import (
	"context"
	"encoding/json"
	"strings"
	"time"
)

// Actor is who makes changes.
type Actor struct {
	By      string // the id of an API key, ActorCommand or ActorStart
	Request string // the id of the request; "" outside of HTTP
}

// Actors that are no API keys.
const (
	ActorCommand = "command-line" // a command of quotad, such as keys create
	ActorStart   = "start"        // quotad serve, as it starts
)

type actorKey struct{}

// As returns a context whose changes are audited as an actor's. Without an actor a change is
// quotad's own, and is not audited.
func As(ctx context.Context, a Actor) context.Context { return context.WithValue(ctx, actorKey{}, a) }

// Itself returns a context whose changes are quotad's own.
func Itself(ctx context.Context) context.Context { return As(ctx, Actor{}) }

// ActorOf returns the actor of a context. acts is false where quotad itself acts.
func ActorOf(ctx context.Context) (a Actor, acts bool) {
	a, _ = ctx.Value(actorKey{}).(Actor)
	return a, a.By != ""
}

// What an actor did. What has a state of its own has words of its own beside these.
const (
	AuditCreate = "create"
	AuditChange = "change"
	AuditDelete = "delete"
)

// AuditWrite is the action of a write that may make what it writes.
func AuditWrite(created bool) string {
	if created {
		return AuditCreate
	}
	return AuditChange
}

// Audited is a change that an actor made.
type Audited struct {
	Action   string
	Target   string // its path under /v1/, not percent-encoded, such as customers/acme/overrides/hourly
	Customer int64  // the id of the customer that it tells something of; 0: of none
	Scrubbed bool   // it tells nothing of that customer
	// Before and After are what was there and what is there now, as JSON. nil: nothing.
	Before, After any
}

// Subject is what a target belongs to: the first two parts of its path.
func Subject(target string) string {
	kind, rest, _ := strings.Cut(target, "/")
	if rest == "" {
		return kind
	}
	key, _, _ := strings.Cut(rest, "/")
	return kind + "/" + key
}

// maxAudited bounds each of Before and After as they are stored, bytes.
const maxAudited = 8 << 10

// Documents are Before and After as JSON. Of one that is too long the longest members are left
// out: in place of their values they say how many bytes these have.
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

// AuditEntry is a change as it is shown.
type AuditEntry struct {
	ID            int64
	At            time.Time
	Actor         string
	ActorName     string // of the key; "" if the actor is none
	Action        string
	Target        string
	Before, After []byte // JSON; nil: nothing
	Request       string
}

// AuditFilter chooses changes. A zero field chooses all.
type AuditFilter struct {
	Actor string
	// Target is a path: of this, and of all below it. Without a slash it is the key of whatever
	// has that key.
	Target string
	// From and To bound the time, µs, [From, To). A nil one is no bound.
	From, To *int64
}
