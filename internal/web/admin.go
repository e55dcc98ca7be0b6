package web

import (
	"crypto/sha256"
	"encoding/hex"
	"html/template"
	"net/http"
	"net/url"
	"strings"

	"quotad/internal/plans"
	"quotad/internal/web/page"
	"quotad/internal/web/parts"
)

// A visit is one of the pages of those who have a key.
type staffVisit struct{ *page.Visit }

var adminPages = []struct {
	pattern string
	who     page.Who
	show    func(*staffVisit) (*page.View, error)
}{
	{"GET /admin/sign-in", page.Anyone, (*staffVisit).signInForm},
	{"POST /admin/sign-in", page.Anyone, (*staffVisit).signIn},
	{"POST /admin/sign-out", page.Staff, (*staffVisit).signOut},
	{"GET /admin/{$}", page.Anyone, (*staffVisit).toAdmin},
	{"GET /admin", page.Staff, (*staffVisit).adminHome},
	{"GET /admin/reconcile", page.Staff, (*staffVisit).adminReconcile},
	{"POST /admin/reconcile", page.Staff, (*staffVisit).adminReconcile},
	{"GET /admin/customers", page.Staff, (*staffVisit).adminCustomers},
	{"POST /admin/customers", page.Staff, (*staffVisit).makeCustomer},
	{"GET /admin/customers/{key}", page.Staff, (*staffVisit).adminCustomer},
	{"POST /admin/customers/{key}", page.Staff, (*staffVisit).saveCustomer},
	{"POST /admin/customers/{key}/archive", page.Staff, (*staffVisit).archiveCustomer},
	{"POST /admin/customers/{key}/portal", page.Staff, (*staffVisit).openPortal},
	{"POST /admin/customers/{key}/overrides", page.Staff, (*staffVisit).saveOverride},
	{"POST /admin/customers/{key}/overrides/{limit}/delete", page.Staff, (*staffVisit).deleteOverride},
	{"GET /admin/customers/{key}/settings", page.Staff, (*staffVisit).customerSettings},
	{"GET /admin/customers/{key}/usage", page.Staff, (*staffVisit).customerUsage},
	{"GET /admin/customers/{key}/usage.csv", page.Staff, (*staffVisit).customerUsageFile},
	{"GET /admin/customers/{key}/billing", page.Staff, (*staffVisit).customerBilling},
	{"POST /admin/customers/{key}/credits", page.Staff, (*staffVisit).grantCredit},
	{"POST /admin/customers/{key}/charges", page.Staff, (*staffVisit).chargeOnce},
	{"POST /admin/customers/{key}/adjustments", page.Staff, (*staffVisit).adjustUsage},
	{"GET /admin/meters", page.Staff, (*staffVisit).adminMeters},
	{"POST /admin/meters", page.Staff, (*staffVisit).saveMeter},
	{"GET /admin/plans", page.Staff, (*staffVisit).adminPlans},
	{"GET /admin/keys", page.Staff, (*staffVisit).adminKeys},
	{"POST /admin/keys", page.Staff, (*staffVisit).makeKey},
	{"POST /admin/keys/{id}/revoke", page.Staff, (*staffVisit).revokeKey},
	{"GET /admin/invoices", page.Staff, (*staffVisit).adminInvoices},
	{"GET /admin/invoices.csv", page.Staff, (*staffVisit).invoicesCSV},
	{"GET /admin/invoices/{id}", page.Staff, (*staffVisit).adminInvoice},
	{"GET /admin/invoices/file/{file}", page.Staff, (*staffVisit).paper},
	{"POST /admin/invoices/{id}/finalize", page.Staff, (*staffVisit).finalizeInvoice},
	{"POST /admin/invoices/{id}/pay", page.Staff, (*staffVisit).payInvoice},
	{"POST /admin/invoices/{id}/void", page.Staff, (*staffVisit).voidInvoice},
	{"POST /admin/invoices/{id}/credit-notes", page.Staff, (*staffVisit).creditInvoice},
	{"GET /admin/audit", page.Staff, (*staffVisit).adminAudit},
	{"GET /admin/plans/{key}", page.Staff, (*staffVisit).planEditor},
	{"POST /admin/plans/{key}", page.Staff, (*staffVisit).savePlan},
	{"POST /admin/plans/{key}/discard", page.Staff, (*staffVisit).discardPlan},
	{"GET /admin/plans/{key}/play", page.Staff, (*staffVisit).planPlay},
	{"GET /admin/plans/{key}/publish", page.Staff, (*staffVisit).planReview},
	{"POST /admin/plans/{key}/publish", page.Staff, (*staffVisit).publishPlan},
	{"POST /admin/plans/{key}/rebase", page.Staff, (*staffVisit).rebasePlan},
	{"GET /admin/plans/{key}/versions", page.Staff, (*staffVisit).planVersions},
}

// addAdmin adds the pages to a site.
func addAdmin(site *page.Site) {
	for _, p := range adminPages {
		site.Add(p.pattern, p.who, func(v *page.Visit) (*page.View, error) { return p.show(&staffVisit{v}) })
	}
}

// functionsOfStaff are those of the templates of these pages.
var functionsOfStaff = template.FuncMap{"input": inputOf, "words": optionText, "day": dayOf}

type signInData struct{ To, Wrong string }

func (v *staffVisit) signInForm() (*page.View, error) {
	return signInView(http.StatusOK, signInData{To: adminPath(v.R.URL.Query().Get("to"))}), nil
}

func signInView(status int, data signInData) *page.View {
	return &page.View{Status: status, Sheet: "sign-in", Layout: "plain", Title: "Sign in", Data: data}
}

// signIn begins a session of a key. The secret is not kept.
func (v *staffVisit) signIn() (*page.View, error) {
	fields, err := v.form()
	if err != nil {
		return nil, err
	}
	to, secret := adminPath(fields.Get("to")), strings.TrimSpace(fields.Get("key"))
	key, status, detail := v.Site.Options.SignIn(v.R, secret)
	switch {
	case status == http.StatusUnauthorized:
		return signInView(status, signInData{to, "This key is unknown, revoked or expired."}), nil
	case status != http.StatusOK:
		return signInView(status, signInData{to, detail}), nil
	case key.Scope == plans.ScopeBackend:
		return signInView(http.StatusForbidden, signInData{to, "Keys of the scope backend open no pages."}), nil
	}
	hash := sha256.Sum256([]byte(secret))
	err = v.Site.Open(v.W, v.R, v.Site.Sessions.Admin, page.NewSession{Key: key.ID}, map[string]string{page.KeyHash: hex.EncodeToString(hash[:])})
	return &page.View{To: to}, err
}

// adminPath is where one goes after signing in: a page of the site, never another site.
func adminPath(to string) string {
	u, err := url.Parse(to)
	if err != nil || u.Host != "" || u.Scheme != "" || !strings.HasPrefix(u.Path, "/admin/") || strings.HasPrefix(u.Path, "/admin/sign") {
		return "/admin"
	}
	return (&url.URL{Path: u.Path, RawQuery: u.RawQuery}).String()
}

func (v *staffVisit) signOut() (*page.View, error) {
	err := v.Session.End(v.W)
	v.Session = nil
	return &page.View{To: "/admin/sign-in"}, err
}

func (v *staffVisit) toAdmin() (*page.View, error) { return &page.View{To: "/admin"}, nil }

// paper is an invoice as a file.
func (v *staffVisit) paper() (*page.View, error) { return parts.Paper(v.Visit) }
