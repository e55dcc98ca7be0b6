package web

import (
	"crypto/sha256"
	"encoding/hex"
	"html/template"
	"net/http"
	"net/url"
	"strings"

	"quotad/internal/plans"
)

// A visit is one of the pages of those who have a key.
type staffVisit struct{ *Visit }

var adminPages = []struct {
	pattern string
	who     who
	show    func(*staffVisit) (*view, error)
}{
	{"GET /admin/sign-in", anyone, (*staffVisit).signInForm},
	{"POST /admin/sign-in", anyone, (*staffVisit).signIn},
	{"POST /admin/sign-out", staff, (*staffVisit).signOut},
	{"GET /admin/{$}", anyone, (*staffVisit).toAdmin},
	{"GET /admin", staff, (*staffVisit).adminHome},
	{"GET /admin/reconcile", staff, (*staffVisit).adminReconcile},
	{"POST /admin/reconcile", staff, (*staffVisit).adminReconcile},
	{"GET /admin/customers", staff, (*staffVisit).adminCustomers},
	{"POST /admin/customers", staff, (*staffVisit).makeCustomer},
	{"GET /admin/customers/{key}", staff, (*staffVisit).adminCustomer},
	{"POST /admin/customers/{key}", staff, (*staffVisit).saveCustomer},
	{"POST /admin/customers/{key}/archive", staff, (*staffVisit).archiveCustomer},
	{"POST /admin/customers/{key}/portal", staff, (*staffVisit).openPortal},
	{"POST /admin/customers/{key}/overrides", staff, (*staffVisit).saveOverride},
	{"POST /admin/customers/{key}/overrides/{limit}/delete", staff, (*staffVisit).deleteOverride},
	{"GET /admin/customers/{key}/settings", staff, (*staffVisit).customerSettings},
	{"GET /admin/customers/{key}/usage", staff, (*staffVisit).customerUsage},
	{"GET /admin/customers/{key}/usage.csv", staff, (*staffVisit).customerUsageFile},
	{"GET /admin/customers/{key}/billing", staff, (*staffVisit).customerBilling},
	{"POST /admin/customers/{key}/credits", staff, (*staffVisit).grantCredit},
	{"POST /admin/customers/{key}/charges", staff, (*staffVisit).chargeOnce},
	{"POST /admin/customers/{key}/adjustments", staff, (*staffVisit).adjustUsage},
	{"GET /admin/meters", staff, (*staffVisit).adminMeters},
	{"POST /admin/meters", staff, (*staffVisit).saveMeter},
	{"GET /admin/plans", staff, (*staffVisit).adminPlans},
	{"GET /admin/keys", staff, (*staffVisit).adminKeys},
	{"POST /admin/keys", staff, (*staffVisit).makeKey},
	{"POST /admin/keys/{id}/revoke", staff, (*staffVisit).revokeKey},
	{"GET /admin/invoices", staff, (*staffVisit).adminInvoices},
	{"GET /admin/invoices.csv", staff, (*staffVisit).invoicesCSV},
	{"GET /admin/invoices/{id}", staff, (*staffVisit).adminInvoice},
	{"GET /admin/invoices/file/{file}", staff, (*staffVisit).paper},
	{"POST /admin/invoices/{id}/finalize", staff, (*staffVisit).finalizeInvoice},
	{"POST /admin/invoices/{id}/pay", staff, (*staffVisit).payInvoice},
	{"POST /admin/invoices/{id}/void", staff, (*staffVisit).voidInvoice},
	{"POST /admin/invoices/{id}/credit-notes", staff, (*staffVisit).creditInvoice},
	{"GET /admin/audit", staff, (*staffVisit).adminAudit},
	{"GET /admin/plans/{key}", staff, (*staffVisit).planEditor},
	{"POST /admin/plans/{key}", staff, (*staffVisit).savePlan},
	{"POST /admin/plans/{key}/discard", staff, (*staffVisit).discardPlan},
	{"GET /admin/plans/{key}/play", staff, (*staffVisit).planPlay},
	{"GET /admin/plans/{key}/publish", staff, (*staffVisit).planReview},
	{"POST /admin/plans/{key}/publish", staff, (*staffVisit).publishPlan},
	{"POST /admin/plans/{key}/rebase", staff, (*staffVisit).rebasePlan},
	{"GET /admin/plans/{key}/versions", staff, (*staffVisit).planVersions},
}

// addAdmin adds the pages to a site.
func addAdmin(site *Site) {
	for _, p := range adminPages {
		site.add(p.pattern, p.who, func(v *Visit) (*view, error) { return p.show(&staffVisit{v}) })
	}
}

// functionsOfStaff are those of the templates of these pages.
var functionsOfStaff = template.FuncMap{"input": inputOf, "words": optionText, "day": dayOf}

type signInData struct{ To, Wrong string }

func (v *staffVisit) signInForm() (*view, error) {
	return signInView(http.StatusOK, signInData{To: adminPath(v.r.URL.Query().Get("to"))}), nil
}

func signInView(status int, data signInData) *view {
	return &view{status: status, sheet: "sign-in", layout: "plain", title: "Sign in", data: data}
}

// signIn begins a session of a key. The secret is not kept.
func (v *staffVisit) signIn() (*view, error) {
	fields, err := v.form()
	if err != nil {
		return nil, err
	}
	to, secret := adminPath(fields.Get("to")), strings.TrimSpace(fields.Get("key"))
	key, status, detail := v.site.options.SignIn(v.r, secret)
	switch {
	case status == http.StatusUnauthorized:
		return signInView(status, signInData{to, "This key is unknown, revoked or expired."}), nil
	case status != http.StatusOK:
		return signInView(status, signInData{to, detail}), nil
	case key.Scope == plans.ScopeBackend:
		return signInView(http.StatusForbidden, signInData{to, "Keys of the scope backend open no pages."}), nil
	}
	hash := sha256.Sum256([]byte(secret))
	err = v.site.open(v.w, v.r, v.site.sessions.admin, newSession{key: key.ID}, map[string]string{keyHash: hex.EncodeToString(hash[:])})
	return &view{to: to}, err
}

// adminPath is where one goes after signing in: a page of the site, never another site.
func adminPath(to string) string {
	u, err := url.Parse(to)
	if err != nil || u.Host != "" || u.Scheme != "" || !strings.HasPrefix(u.Path, "/admin/") || strings.HasPrefix(u.Path, "/admin/sign") {
		return "/admin"
	}
	return (&url.URL{Path: u.Path, RawQuery: u.RawQuery}).String()
}

func (v *staffVisit) signOut() (*view, error) {
	err := v.session.end(v.w)
	v.session = nil
	return &view{to: "/admin/sign-in"}, err
}

func (v *staffVisit) toAdmin() (*view, error) { return &view{to: "/admin"}, nil }

// paper is an invoice as a file.
func (v *staffVisit) paper() (*view, error) { return paper(v.Visit) }
