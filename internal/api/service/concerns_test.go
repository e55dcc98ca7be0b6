package service

import (
	"slices"
	"strings"
	"testing"
	"time"

	"quotad/client"
)

func TestConcerns(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 20, 6, 0, 0, 0, time.UTC)
	old, young := at.Add(-11*time.Minute), at.Add(-9*time.Minute)
	for says, body := range map[string]*client.Overview{
		"": {
			Database: &client.Database{Connections: 89, MaxConnections: 100, OldestTransactionAt: &young},
			Nodes:    []client.Node{{Name: "a", State: "ready"}, {Name: "b", State: "stopping"}},
		},
		"connections: 90 of 100 connections of the database are taken.": {Database: &client.Database{
			Connections:    90,
			MaxConnections: 100,
		}},
		"old_transaction: A transaction has been open for 11 minutes. Until it ends, dead rows stay and tables grow.": {Database: &client.Database{
			MaxConnections:      100,
			OldestTransactionAt: &old,
		}},
		"database_read_only: The database takes no writes: its server is in recovery.": {Database: &client.Database{
			MaxConnections: 100,
			ReadOnly:       true,
		}},
		"node_silent: Node a has not been heard of for 11 minutes. It was killed, or cannot write to the database.": {Nodes: []client.Node{{
			Name:  "a",
			State: stateSilent, SeenAt: old,
		}}},
		"books_disagree: The books did not agree at the last check: x, y.": {Books: client.Books{Disagreeing: []string{
			"x",
			"y",
		}}},
		"billing_blocked: Billing is blocked for 2 of the customers. A check of the books names them.":                   {Books: client.Books{BlockedCustomers: 2}},
		"invoices_overdue: An invoice is overdue. The list of invoices shows it by its status, overdue.":                 {Books: client.Books{OverdueInvoices: 1}},
		"invoices_overdue: 2 invoices are overdue. The list of invoices shows them by their status, overdue.":            {Books: client.Books{OverdueInvoices: 2}},
		"invoices_overdue: 1000 invoices or more are overdue. The list of invoices shows them by their status, overdue.": {Books: client.Books{OverdueInvoices: 1000}},
	} {
		var said []string
		for _, c := range concerns(body, at.UnixMicro()) {
			said = append(said, c.Name+": "+c.Text)
		}
		if strings.Join(said, "|") != says {
			t.Errorf("%q, want %q", said, says)
		}
	}
	if many := concerns(&client.Overview{Nodes: slices.Repeat([]client.Node{{State: stateSilent}}, 500)}, at.UnixMicro()); len(many) != maxConcernedNodes {
		t.Errorf("%d concerns", len(many))
	}
}
