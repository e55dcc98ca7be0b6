package page

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// guard does what all pages have in common before one of them is asked: it keeps other sites'
// requests and, without TLS, other machines out. Assets are the same for everybody, and the page that
// says so needs them.
func (s *Site) guard(next http.Handler) (http.Handler, error) {
	cross := http.NewCrossOriginProtection()
	if u, err := url.Parse(s.Options.URL); err == nil && u.Host != "" {
		if err := cross.AddTrustedOrigin(u.Scheme + "://" + u.Host); err != nil {
			return nil, err
		}
	}
	cross.SetDenyHandler(s.serve(Anyone, func(*Visit) (*View, error) { return nil, errCrossOrigin }))
	local := s.serve(Anyone, func(*Visit) (*View, error) { return nil, errNotSecure })
	guarded := cross.Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.Options.Secure && !fromHere(r) && !strings.HasPrefix(r.URL.Path, "/assets/") {
			local.ServeHTTP(w, r)
			return
		}
		guarded.ServeHTTP(w, r)
	}), nil
}

var (
	errCrossOrigin = &Message{Status: http.StatusForbidden, Title: "This came from another site", Text: "Open the page here and try again."}
	errNotSecure   = &Message{Status: http.StatusForbidden, Title: "Pages need https", Text: "Without it they are shown on the same machine only. The operator sets --tls-cert and --tls-key, or an https --public-url behind a proxy."}
)

// fromHere reports whether a request comes from this machine, and asks for it by a name that no
// other site can have.
func fromHere(r *http.Request) bool {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !peer.Addr().Unmap().IsLoopback() {
		return false
	}
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	address, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return host == "localhost" || err == nil && address.IsLoopback()
}

// policy is the Content-Security-Policy of a page. ancestors may show it in a frame; empty: none.
func policy(ancestors string) string {
	if ancestors == "" {
		ancestors = "'none'"
	}
	return "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors " + ancestors
}

// Protect sets the headers of every page.
func Protect(h http.Header, ancestors string) {
	h.Set("Content-Security-Policy", policy(ancestors))
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
}
