package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"quotad/client"
)

const (
	feedPage = 1000
	// keptFor is the minimum time for which quotad keeps events.
	keptFor = 48 * time.Hour
)

// page returns the next events. It also requests the last event that was read. If another event has that id now,
// the cursor belongs to another feed, and page returns an error. more reports that there may be further events.
func (b *bridge) page(ctx context.Context) (items []client.Event, more bool, err error) {
	var cursor int64
	var last *lastEvent
	var seen time.Time
	b.store.read(func(s *state) { cursor, last, seen = s.Cursor, s.Last, s.Seen })
	list, err := b.quotad.Events(ctx, url.Values{"after": {strconv.FormatInt(max(0, cursor-1), 10)}, "limit": {strconv.Itoa(feedPage)}})
	if err != nil {
		return nil, false, err
	}
	items, more = list.Items, len(list.Items) == feedPage
	if last == nil {
		return items, more, consecutive(items)
	}
	switch {
	case len(items) == 0 && time.Since(seen) < keptFor:
		return nil, false, &feedError{fmt.Sprintf("quotad at %s has no event %d, the last one that was read: the state file %s is of another installation, or quotad's database was restored. Move the file away and run with --start=all: what is at Stripe is found there",
			b.QuotadURL, cursor, b.State)}
	case len(items) == 0:
		return nil, false, nil // all events are old and were deleted
	case items[0].ID == cursor && (items[0].Type != last.Type || !items[0].At.Equal(last.At)):
		return nil, false, &feedError{fmt.Sprintf("event %d of quotad at %s is %s of %s, and the state file %s has read %s of %s under that id: the file is of another installation, or quotad's database was restored. Move the file away and run with --start=all: what is at Stripe is found there",
			cursor, b.QuotadURL, items[0].Type, items[0].At.Format(time.RFC3339), b.State, last.Type, last.At.Format(time.RFC3339))}
	case items[0].ID == cursor:
		b.store.read(func(s *state) { s.Seen = time.Now() }) // saved with the next change
		items = items[1:]
	case items[0].ID > cursor+1 && !b.AcceptGap:
		return nil, false, &feedError{fmt.Sprintf("quotad has deleted the events %d to %d before they were read. Look through the invoices of that time and send what is missing by hand, then run once with --accept-gap",
			cursor+1, items[0].ID-1)}
	}
	return items, more, consecutive(items)
}

// consecutive returns an error if the ids of events have gaps, although quotad guarantees that they have none.
func consecutive(items []client.Event) error {
	for i := 1; i < len(items); i++ {
		if items[i].ID != items[i-1].ID+1 {
			return &feedError{fmt.Sprintf("quotad's events have none between %d and %d: this bridge does not know such a feed, and would lose invoices",
				items[i-1].ID, items[i].ID)}
		}
	}
	return nil
}

// pass records that an event was read.
func (s *state) pass(e client.Event) {
	s.Cursor, s.Last, s.Seen = e.ID, &lastEvent{e.Type, e.At}, time.Now()
}

// follow reads the new events. The queued invoices and the cursor are written together.
func (b *bridge) follow(ctx context.Context) error {
	for more := true; more; {
		waiting := 0
		b.store.read(func(s *state) { waiting = len(s.Work) })
		if waiting >= mostWork {
			return nil
		}
		var items []client.Event
		var err error
		if items, more, err = b.page(ctx); err != nil || len(items) == 0 {
			return err
		}
		asked := make([]string, 0, len(items))
		for _, e := range items {
			if id, ok := b.concerns(e); ok {
				asked = append(asked, id)
			}
		}
		b.store.change(func(s *state) {
			now := time.Now()
			for _, id := range asked {
				s.ask(id, now)
			}
			s.pass(items[len(items)-1])
		})
		if err := b.store.save(); err != nil {
			return err
		}
	}
	return nil
}

// concerns returns the id of the invoice that an event concerns. ok is false if the event cannot affect the
// invoice at Stripe.
func (b *bridge) concerns(e client.Event) (id string, ok bool) {
	switch e.Type {
	case "invoice.finalized", "invoice.paid", "invoice.void", "invoice.credited", "invoice.overdue", "payment.noted", "payment.reversed":
	default:
		return "", false
	}
	if !b.sends(e.TestClock != nil) {
		return "", false
	}
	data, err := eventData(e)
	if err != nil || !plausible(data.ID) {
		b.log.Error("an event of quotad's cannot be read: is quotad newer than the bridge?", "event", e.ID, "type", e.Type, "error", err)
		return "", false
	}
	return data.ID, true
}

// plausible reports whether a text can be the id of an invoice, because Stripe's metadata can contain any text.
func plausible(id string) bool {
	return id != "" && len(id) <= 64 && strings.Trim(id, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_") == ""
}

func eventData(e client.Event) (data client.EventData, err error) {
	return data, json.Unmarshal(e.Data, &data)
}
