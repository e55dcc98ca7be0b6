package page

import "quotad/internal/plans"

// A tab is an entry of a menu. Name is the value of View.Tab on the entry's pages.
type tab struct{ Name, Text, URL string }

func portalTabs() []tab {
	return []tab{
		{"overview", "Overview", "/portal"},
		{"usage", "Usage", "/portal/usage"},
		{"refusals", "Refusals", "/portal/refusals"},
		{"invoices", "Invoices", "/portal/invoices"},
		{"plan", "Plan", "/portal/plan"},
	}
}

// A group is a titled group of entries in the menu of the admin pages.
type group struct {
	Group string
	Tabs  []tab
}

// adminTabs returns the menu entries that a key with the scope may open. If scope is empty, the scope is unknown
// and all entries are returned.
func adminTabs(scope string) []group {
	service := []tab{{"overview", "Overview", "/admin"}}
	if scope == "" || plans.Scope(scope) == plans.ScopeAdmin {
		service = append(service, tab{"keys", "Keys", "/admin/keys"}, tab{"webhooks", "Webhooks", "/admin/webhooks"}, tab{"audit", "Audit", "/admin/audit"},
			tab{"reconcile", "Check the books", "/admin/reconcile"})
	}
	return []group{
		{"", service},
		{"Customers", []tab{{"customers", "Customers", "/admin/customers"}, {"invoices", "Invoices", "/admin/invoices"}}},
		{"What is sold", []tab{{"plans", "Plans", "/admin/plans"}, {"meters", "Meters", "/admin/meters"}}},
	}
}
