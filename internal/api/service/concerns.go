package service

import (
	"fmt"
	"strings"
	"time"

	"quotad/client"
	"quotad/internal/api/respond"
	"quotad/internal/api/serve"
	"quotad/internal/billing/accounts"
	"quotad/internal/billing/closing"
)

// Thresholds from which a state is a concern.
const (
	// silentAfter is the time without a heartbeat after which a node counts as silent: three heartbeats, µs.
	silentAfter = int64(15e6)
	stateSilent = "silent"
	// oldTransaction is the age from which an open transaction is a concern. While the transaction is open,
	// PostgreSQL removes no younger dead row, so the tables of hits grow.
	oldTransaction = 10 * time.Minute
	// maxConcernedNodes is the maximum number of nodes that a concern names.
	maxConcernedNodes = 10
)

// concerns returns the states that need attention, for the parts of the overview that could be read.
func concerns(body *client.Overview, now int64) []client.Concern {
	all := []client.Concern{}
	add := func(name, format string, args ...any) {
		all = append(all, client.Concern{Name: name, Text: fmt.Sprintf(format, args...)})
	}
	for i := range body.Nodes {
		switch n := &body.Nodes[i]; {
		case len(all) == maxConcernedNodes:
		case n.State == stateSilent:
			add("node_silent", "Node %s has not been heard of for %s. It was killed, or cannot write to the database.", n.Name, ago(now, n.SeenAt))
		case n.State == string(serve.StateDegraded):
			add("node_degraded", "Node %s is degraded: %s.", n.Name, n.Reason)
		}
	}
	if d := body.Database; d != nil {
		if d.ReadOnly {
			add("database_read_only", "The database takes no writes: its server is in recovery.")
		}
		if d.Connections*10 >= d.MaxConnections*9 {
			add("connections", "%d of %d connections of the database are taken.", d.Connections, d.MaxConnections)
		}
		if at := d.OldestTransactionAt; at != nil && respond.Time(now).Sub(*at) > oldTransaction {
			add("old_transaction", "A transaction has been open for %s. Until it ends, dead rows stay and tables grow.", ago(now, *at))
		}
	}
	if checks := body.Books.Disagreeing; len(checks) > 0 {
		add("books_disagree", "The books did not agree at the last check: %s.", strings.Join(checks, ", "))
	}
	if n := body.Books.BlockedCustomers; n > 0 {
		add("billing_blocked", "Billing is blocked for %d of the customers. A check of the books names them.", n)
	}
	switch n := body.Books.OverdueInvoices; {
	case n == 1:
		add("invoices_overdue", "An invoice is overdue. The list of invoices shows it by its status, overdue.")
	case n >= closing.MaxOverdue:
		add("invoices_overdue", "%d invoices or more are overdue. The list of invoices shows them by their status, overdue.", n)
	case n > 1:
		add("invoices_overdue", "%d invoices are overdue. The list of invoices shows them by their status, overdue.", n)
	}
	return all
}

// heldConcerns returns the concerns about sellers whose invoices are held.
func heldConcerns(nameless []accounts.Nameless) (all []client.Concern) {
	for _, n := range nameless {
		invoices := fmt.Sprintf("%d invoices are", n.Drafts)
		switch n.Drafts {
		case 1:
			invoices = "An invoice is"
		case accounts.MaxNameless:
			invoices = fmt.Sprintf("%d invoices or more are", n.Drafts)
		}
		all = append(all, client.Concern{
			Name: "seller_without_name",
			Text: fmt.Sprintf("%s held until the seller %s has a name: PUT /v1/sellers/%[2]s.", invoices, n.Seller),
		})
	}
	return all
}

// ago returns the time since an instant in whole units.
func ago(now int64, at time.Time) string {
	d := respond.Time(now).Sub(at)
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%d seconds", int64(d/time.Second))
	case d < 2*time.Hour:
		return fmt.Sprintf("%d minutes", int64(d/time.Minute))
	}
	return fmt.Sprintf("%d hours", int64(d/time.Hour))
}
