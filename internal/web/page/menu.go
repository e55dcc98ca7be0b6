package page

import "quotad/internal/plans"

// A tab is an entry of a menu. Name is what the views of its pages say.
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

// A group of entries in the menu of the admin pages.
type group struct {
	Group string
	Tabs  []tab
}

// adminTabs are those that a key of the scope may open. An empty scope is not known: then all are.
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
