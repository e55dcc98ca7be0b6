package main

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"

	"quotad/internal/testkit"
)

// rotate gives a webhook another secret, which the page then shows.
func rotate(w *window) {
	w.t.Helper()
	eval[string](w, `(() => { document.querySelector('form[action$="/rotate"]').submit(); return "" })()`)
	w.settles("the secret", `document.body.innerText.includes("whsec_") && document.readyState === "complete"`)
}

// askAll opens all that asks before it is done.
func askAll(w *window) {
	w.t.Helper()
	if n := eval[int](w, `(all => (all.forEach(e => e.firstElementChild.click()), all.length))([...document.querySelectorAll("details.ask")])`); n == 0 {
		w.t.Fatal("nothing asks")
	}
}

// TestPagesAskOnce: what takes something away is asked once, with script and without, and then it is
// done. A first press does nothing.
func TestPagesAskOnce(t *testing.T) {
	t.Parallel()
	n := start(t, "", "--close-delay=1h")
	n.setUp(fixed("hourly", 100))
	w := openWindow(t, n)
	for _, plain := range []bool{false, true} {
		w.as("admin")
		call(w, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: plain})
		n.do("PUT", "/v1/customers/gone"+fmt.Sprint(plain), onPlan).is(201)
		n.do("PUT", "/v1/customers/acme/overrides/hourly", `{"limit":200}`).is(201)
		n.do("PUT", "/v1/plans/basic/draft", planOf(fixed("hourly", 300))).is(201)
		id, _ := n.newKey("read")
		there := func(path, what string) bool {
			a := n.do("GET", path, "")
			return a.status == 200 && strings.Contains(string(a.raw), what)
		}
		for _, row := range []struct {
			page, action, sure string
			stands             func() bool
		}{
			{"/admin/keys", "/admin/keys/" + id + "/revoke", "Yes, revoke it", func() bool { return there("/v1/keys", id) }},
			{
				"/admin/customers/acme", "/admin/customers/acme/overrides/hourly/delete", "Yes, delete it",
				func() bool { return there("/v1/customers/acme/overrides", "hourly") },
			},
			{"/admin/plans/basic", "/admin/plans/basic/discard", "Yes, discard it", func() bool { return there("/v1/plans/basic/draft", "hourly") }},
			{
				"/admin/customers/gone" + fmt.Sprint(plain) + "/settings", "/admin/customers/gone" + fmt.Sprint(plain) + "/archive", "Yes, archive it",
				func() bool { return there("/v1/customers/gone"+fmt.Sprint(plain), `"archived_at":null`) },
			},
		} {
			t.Run(fmt.Sprintf("%s, without script %t", row.action, plain), func(t *testing.T) {
				w.t = t
				w.look(390, "light", row.page)
				if bare := eval[[]string](w, `[...document.querySelectorAll("form .button.danger")].filter(b => !b.closest(".ask, .fold")).map(b => b.form.action)`); len(bare) > 0 {
					t.Errorf("done without being asked: %q", bare)
				}
				form := fmt.Sprintf(`document.querySelector('details.ask > form[action=%q]')`, row.action)
				if eval[bool](w, form+".checkVisibility()") {
					t.Error("the question is there before it is asked for")
				}
				eval[int](w, form+".previousElementSibling.click();0")
				w.until("the question", form+".checkVisibility()")
				if !row.stands() {
					t.Fatal("one press has done it")
				}
				if text := eval[string](w, form+`.querySelector("button").innerText`); text != row.sure {
					t.Errorf("it asks %q", text)
				}
				eval[int](w, form+`.querySelector("button").click();0`)
				testkit.Eventually(t, "it is done", func() bool { return !row.stands() })
			})
		}
		w.t = t
		call(w, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{})
	}
}

// TestOwnKeyIsMarked: nobody revokes unawares the key with which they are signed in.
func TestOwnKeyIsMarked(t *testing.T) {
	t.Parallel()
	n := start(t, "")
	mine, secret := n.newKey("admin")
	b := n.signedIn(secret)
	const mark = "you are signed in with it"
	row := regexp.MustCompile(`(?s)<tr>.*?</tr>`)
	for _, text := range row.FindAllString(b.get("/admin/keys").is(200).text, -1) {
		if own := strings.Contains(text, "/admin/keys/"+mine+"/revoke"); own != strings.Contains(text, mark) ||
			own != strings.Contains(text, "revoking it signs you out") {
			t.Errorf("own %t:\n%s", own, text)
		}
	}
	b.post("/admin/keys/"+mine+"/revoke", nil).goes("/admin/sign-in")
	b.get("/admin/keys").goes("/admin/sign-in?to=%2Fadmin%2Fkeys")
}

// printed are the texts of buttons and links that are on paper.
const printed = `[...document.querySelectorAll("a, button, summary, input")].filter(e => e.checkVisibility() && !e.matches(".brand")).map(e => e.innerText)`

// TestInvoiceIsPrintedWithoutButtons: and its amounts are written as those of its PDF.
func TestInvoiceIsPrintedWithoutButtons(t *testing.T) {
	t.Parallel()
	n := start(t, "")
	n.northwind()
	n.billed()
	w := openWindow(t, n)
	for _, row := range []struct{ as, path string }{
		{"billed", "/portal/invoices/" + n.invoice}, {"billed", "/portal/invoices/file/" + n.invoice + ".html"}, {"admin", "/admin/invoices/" + n.invoice},
	} {
		w.as(row.as)
		w.look(1280, "dark", row.path)
		call(w, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: "print"})
		for _, text := range eval[[]string](w, printed) {
			t.Errorf("%s prints %q", row.path, text)
		}
	}
	amounts := `[...document.querySelectorAll("td.n:last-child")].map(e => e.innerText.trim()).filter(t => t !== "$0.00")`
	w.as("billed")
	w.look(1280, "light", "/portal/invoices/file/"+n.invoice+".html")
	paper := strings.Join(eval[[]string](w, amounts), " ")
	w.look(1280, "light", "/portal/invoices/"+n.invoice)
	for _, amount := range eval[[]string](w, amounts) {
		if !strings.Contains(" "+paper+" ", " "+amount+" ") {
			t.Errorf("the page says %s, and the paper %s", amount, paper)
		}
	}
	if due := eval[string](w, `document.querySelector(".money").innerText`); !strings.HasPrefix(due, "$") {
		t.Errorf("due: %s", due)
	}
}
