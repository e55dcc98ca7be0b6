// Package admin owns the pages for people with a key, and the editor of plans. To add a page, add a template, a
// method that creates its view, and a line in pages.
package admin

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

// visit is one request of an admin page.
type visit struct{ *page.Visit }

// pages lists all admin pages.
var pages = []struct {
	pattern string
	who     page.Who
	show    func(*visit) (*page.View, error)
}{
	{"GET /admin/sign-in", page.Anyone, (*visit).signInForm},
	{"POST /admin/sign-in", page.Anyone, (*visit).signIn},
	{"POST /admin/sign-out", page.Staff, (*visit).signOut},
	{"GET /admin/{$}", page.Anyone, (*visit).toAdmin},
	{"GET /admin", page.Staff, (*visit).home},
	{"GET /admin/reconcile", page.Staff, (*visit).reconcile},
	{"POST /admin/reconcile", page.Staff, (*visit).reconcile},
	{"GET /admin/customers", page.Staff, (*visit).customers},
	{"POST /admin/customers", page.Staff, (*visit).makeCustomer},
	{"GET /admin/customers/{key}", page.Staff, (*visit).customer},
	{"POST /admin/customers/{key}", page.Staff, (*visit).saveCustomer},
	{"POST /admin/customers/{key}/archive", page.Staff, (*visit).archiveCustomer},
	{"POST /admin/customers/{key}/suspension", page.Staff, (*visit).suspend},
	{"POST /admin/customers/{key}/suspension/delete", page.Staff, (*visit).resume},
	{"POST /admin/customers/{key}/portal", page.Staff, (*visit).openPortal},
	{"POST /admin/customers/{key}/overrides", page.Staff, (*visit).saveOverride},
	{"POST /admin/customers/{key}/overrides/{limit}/delete", page.Staff, (*visit).deleteOverride},
	{"GET /admin/customers/{key}/settings", page.Staff, (*visit).customerSettings},
	{"GET /admin/customers/{key}/plan", page.Staff, (*visit).customerPlan},
	{"POST /admin/customers/{key}/plan", page.Staff, (*visit).changePlan},
	{"POST /admin/customers/{key}/plan/drop", page.Staff, (*visit).dropScheduled},
	{"GET /admin/customers/{key}/usage", page.Staff, (*visit).customerUsage},
	{"GET /admin/customers/{key}/usage.csv", page.Staff, (*visit).customerUsageFile},
	{"GET /admin/customers/{key}/billing", page.Staff, (*visit).customerBilling},
	{"POST /admin/customers/{key}/credits", page.Staff, (*visit).grantCredit},
	{"POST /admin/customers/{key}/credits/withdraw", page.Staff, (*visit).withdrawCredit},
	{"POST /admin/customers/{key}/charges", page.Staff, (*visit).chargeOnce},
	{"POST /admin/customers/{key}/adjustments", page.Staff, (*visit).adjustUsage},
	{"POST /admin/customers/{key}/caps", page.Staff, (*visit).saveCap},
	{"POST /admin/customers/{key}/caps/{meter}/delete", page.Staff, (*visit).deleteCap},
	{"GET /admin/meters", page.Staff, (*visit).meters},
	{"POST /admin/meters", page.Staff, (*visit).saveMeter},
	{"GET /admin/plans", page.Staff, (*visit).plans},
	{"GET /admin/keys", page.Staff, (*visit).keys},
	{"POST /admin/keys", page.Staff, (*visit).makeKey},
	{"POST /admin/keys/{id}/revoke", page.Staff, (*visit).revokeKey},
	{"GET /admin/webhooks", page.Staff, (*visit).webhooks},
	{"POST /admin/webhooks", page.Staff, (*visit).makeWebhook},
	{"GET /admin/webhooks/{id}", page.Staff, (*visit).webhook},
	{"POST /admin/webhooks/{id}/test", page.Staff, (*visit).testWebhook},
	{"POST /admin/webhooks/{id}/rotate", page.Staff, (*visit).rotateWebhook},
	{"POST /admin/webhooks/{id}/delete", page.Staff, (*visit).deleteWebhook},
	{"POST /admin/webhooks/{id}/replay", page.Staff, (*visit).replayWebhook},
	{"GET /admin/invoices", page.Staff, (*visit).invoices},
	{"GET /admin/invoices.csv", page.Staff, (*visit).invoicesCSV},
	{"GET /admin/invoices/{id}", page.Staff, (*visit).invoice},
	{"GET /admin/invoices/file/{file}", page.Staff, (*visit).paper},
	{"POST /admin/invoices/{id}/finalize", page.Staff, (*visit).finalizeInvoice},
	{"POST /admin/invoices/{id}/pay", page.Staff, (*visit).payInvoice},
	{"POST /admin/invoices/{id}/apply-credits", page.Staff, (*visit).applyCredits},
	{"POST /admin/invoices/{id}/reverse", page.Staff, (*visit).reversePayment},
	{"POST /admin/invoices/{id}/void", page.Staff, (*visit).voidInvoice},
	{"POST /admin/invoices/{id}/credit-notes", page.Staff, (*visit).creditInvoice},
	{"GET /admin/audit", page.Staff, (*visit).audit},
	{"GET /admin/plans/{key}", page.Staff, (*visit).planEditor},
	{"POST /admin/plans/{key}", page.Staff, (*visit).savePlan},
	{"POST /admin/plans/{key}/discard", page.Staff, (*visit).discardPlan},
	{"GET /admin/plans/{key}/play", page.Staff, (*visit).planPlay},
	{"GET /admin/plans/{key}/publish", page.Staff, (*visit).planReview},
	{"POST /admin/plans/{key}/publish", page.Staff, (*visit).publishPlan},
	{"POST /admin/plans/{key}/rebase", page.Staff, (*visit).rebasePlan},
	{"GET /admin/plans/{key}/versions", page.Staff, (*visit).planVersions},
}

// Add adds the admin pages to a site.
func Add(site *page.Site) {
	for _, p := range pages {
		site.Add(p.pattern, p.who, func(v *page.Visit) (*page.View, error) { return p.show(&visit{v}) })
	}
}

// Functions contains the template functions of these pages.
var Functions = template.FuncMap{"input": inputOf, "words": optionText, "day": dayOf}

type signInData struct{ To, Wrong string }

func (v *visit) signInForm() (*page.View, error) {
	return signInView(http.StatusOK, signInData{To: adminPath(v.R.URL.Query().Get("to"))}), nil
}

func signInView(status int, data signInData) *page.View {
	return &page.View{Status: status, Sheet: "sign-in", Layout: "plain", Title: "Sign in", Data: data}
}

// signIn begins a session of a key. It does not store the secret.
func (v *visit) signIn() (*page.View, error) {
	to, secret := adminPath(v.Form.Get("to")), strings.TrimSpace(v.Form.Get("key"))
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
	err := v.Site.Open(v.W, v.R, v.Site.Sessions.Admin, page.NewSession{Key: key.ID}, map[string]string{page.KeyHash: hex.EncodeToString(hash[:])})
	return &page.View{To: to}, err
}

// adminPath returns the path to open after a sign-in, which is always a page of this site.
func adminPath(to string) string {
	u, err := url.Parse(to)
	if err != nil || u.Host != "" || u.Scheme != "" || !strings.HasPrefix(u.Path, "/admin/") || strings.HasPrefix(u.Path, "/admin/sign") {
		return "/admin"
	}
	return (&url.URL{Path: u.Path, RawQuery: u.RawQuery}).String()
}

func (v *visit) signOut() (*page.View, error) {
	err := v.Session.End(v.W)
	v.Session = nil
	return &page.View{To: "/admin/sign-in"}, err
}

func (v *visit) toAdmin() (*page.View, error) { return &page.View{To: "/admin"}, nil }

// paper serves an invoice as a file.
func (v *visit) paper() (*page.View, error) { return parts.Paper(v.Visit) }
