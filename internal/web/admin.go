package web

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"strings"

	"quotad/internal/plans"
)

// adminPages are the pages of those who have a key.
func adminPages() []page {
	return append(planPages(), []page{
		{"GET /admin/sign-in", anyone, (*visit).signInForm},
		{"POST /admin/sign-in", anyone, (*visit).signIn},
		{"POST /admin/sign-out", staff, (*visit).signOut},
		{"GET /admin/{$}", anyone, (*visit).toAdmin},
		{"GET /admin", staff, (*visit).adminHome},
		{"GET /admin/reconcile", staff, (*visit).adminReconcile},
		{"POST /admin/reconcile", staff, (*visit).adminReconcile},
		{"GET /admin/customers", staff, (*visit).adminCustomers},
		{"POST /admin/customers", staff, (*visit).makeCustomer},
		{"GET /admin/customers/{key}", staff, (*visit).adminCustomer},
		{"POST /admin/customers/{key}", staff, (*visit).saveCustomer},
		{"POST /admin/customers/{key}/archive", staff, (*visit).archiveCustomer},
		{"POST /admin/customers/{key}/portal", staff, (*visit).openPortal},
		{"POST /admin/customers/{key}/overrides", staff, (*visit).saveOverride},
		{"POST /admin/customers/{key}/overrides/{limit}/delete", staff, (*visit).deleteOverride},
		{"GET /admin/customers/{key}/settings", staff, (*visit).customerSettings},
		{"GET /admin/customers/{key}/usage", staff, (*visit).customerUsage},
		{"GET /admin/customers/{key}/usage.csv", staff, (*visit).customerUsageFile},
		{"GET /admin/customers/{key}/billing", staff, (*visit).customerBilling},
		{"POST /admin/customers/{key}/credits", staff, (*visit).grantCredit},
		{"POST /admin/customers/{key}/charges", staff, (*visit).chargeOnce},
		{"POST /admin/customers/{key}/adjustments", staff, (*visit).adjustUsage},
		{"GET /admin/meters", staff, (*visit).adminMeters},
		{"POST /admin/meters", staff, (*visit).saveMeter},
		{"GET /admin/plans", staff, (*visit).adminPlans},
		{"GET /admin/keys", staff, (*visit).adminKeys},
		{"POST /admin/keys", staff, (*visit).makeKey},
		{"POST /admin/keys/{id}/revoke", staff, (*visit).revokeKey},
		{"GET /admin/invoices", staff, (*visit).adminInvoices},
		{"GET /admin/invoices.csv", staff, (*visit).invoicesCSV},
		{"GET /admin/invoices/{id}", staff, (*visit).adminInvoice},
		{"GET /admin/invoices/file/{file}", staff, (*visit).paper},
		{"POST /admin/invoices/{id}/finalize", staff, (*visit).finalizeInvoice},
		{"POST /admin/invoices/{id}/pay", staff, (*visit).payInvoice},
		{"POST /admin/invoices/{id}/void", staff, (*visit).voidInvoice},
		{"POST /admin/invoices/{id}/credit-notes", staff, (*visit).creditInvoice},
		{"GET /admin/audit", staff, (*visit).adminAudit},
	}...)
}

type signInData struct{ To, Wrong string }

func (v *visit) signInForm() (*view, error) {
	return signInView(http.StatusOK, signInData{To: adminPath(v.r.URL.Query().Get("to"))}), nil
}

func signInView(status int, data signInData) *view {
	return &view{status: status, sheet: "sign-in", layout: "plain", title: "Sign in", data: data}
}

// maxForm bounds the body of a form, in bytes.
const maxForm = 64 << 10

// form reads the fields of a form.
func (v *visit) form() (url.Values, error) {
	v.r.Body = http.MaxBytesReader(v.w, v.r.Body, maxForm)
	if err := v.r.ParseForm(); err != nil {
		return nil, &message{status: http.StatusBadRequest, title: "This form could not be read", text: "It may be too long. Go back and try again."}
	}
	for name, values := range v.r.PostForm {
		if !isText(name) || !isText(values...) {
			return nil, errNoText
		}
	}
	return v.r.PostForm, nil
}

// signIn begins a session of a key. The secret is not kept.
func (v *visit) signIn() (*view, error) {
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

// toSignIn leads to the page where one signs in, and from there back.
func (v *visit) toSignIn() *view {
	to := "/admin/sign-in"
	if v.r.Method == http.MethodGet && v.r.URL.Path != "/admin" {
		to += "?to=" + url.QueryEscape(v.r.URL.RequestURI())
	}
	return &view{to: to}
}

func (v *visit) signOut() (*view, error) {
	err := v.session.end(v.w)
	v.session = nil
	return &view{to: "/admin/sign-in"}, err
}

func (v *visit) toAdmin() (*view, error) { return &view{to: "/admin"}, nil }
