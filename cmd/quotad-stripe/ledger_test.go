package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"quotad/internal/testkit"
)

type object = map[string]any

// ledger is Stripe for tests. stripe-mock checks the shape of each request, and says what an answer
// looks like, but forgets what it was told. The ledger remembers: it does each request once under
// its idempotency key, keeps customers, invoices, notes and events, and holds the rules of their
// statuses that the bridge leans on.
type ledger struct {
	mock string // URL of stripe-mock
	http *http.Client

	mu        sync.Mutex
	account   string
	keys      map[string]answer
	customers []object
	invoices  []object
	lines     map[string][]object // of an invoice
	notes     []object
	events    []object
	n         int
	requests  int
	// searchLag is after how many further requests the search finds a customer.
	searchLag int
	born      map[string]int
	refuse    func(r *http.Request, form url.Values) *answer // tests: what fails
}

type answer struct {
	request string
	status  int
	body    []byte
}

func newLedger(mock string) *ledger {
	return &ledger{
		mock: mock, http: &http.Client{Timeout: testkit.Patience}, account: "acct_1",
		keys: map[string]answer{}, lines: map[string][]object{}, born: map[string]int{},
	}
}

func (l *ledger) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 4<<20))
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	shape := l.ask(r, body)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.requests++
	a := shape
	if shape.status < 400 {
		a = l.once(r, body, shape)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body)
}

// asked returns how many requests Stripe has answered.
func (l *ledger) asked() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.requests
}

// ask is what stripe-mock answers.
func (l *ledger) ask(r *http.Request, body []byte) answer {
	request, err := http.NewRequestWithContext(r.Context(), r.Method, l.mock+r.URL.RequestURI(), bytes.NewReader(body))
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	request.Header = r.Header.Clone()
	response, err := l.http.Do(request)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	return answer{status: response.StatusCode, body: raw}
}

// once does a request once under its key, as Stripe does.
func (l *ledger) once(r *http.Request, body []byte, shape answer) answer {
	key := r.Header.Get("Idempotency-Key")
	if r.Method != http.MethodPost || key == "" {
		return l.do(r, body, shape)
	}
	request := r.URL.Path + "\n" + string(body)
	if old, ok := l.keys[key]; ok {
		if old.request != request {
			return refusal(400, "idempotency_error", "", "Keys for idempotent requests can only be used with the same parameters they were first used with")
		}
		return old
	}
	a := l.do(r, body, shape)
	a.request = request
	l.keys[key] = a
	return a
}

func refusal(status int, kind, code, message string) answer {
	raw, _ := json.Marshal(object{"error": object{"type": kind, "code": code, "message": message}})
	return answer{status: status, body: raw}
}

func gone(what string) answer {
	return refusal(404, "invalid_request_error", "resource_missing", "No such "+what)
}

func wrong(message string) answer { return refusal(400, "invalid_request_error", "", message) }

func reply(o object) answer {
	raw, _ := json.Marshal(o)
	return answer{status: 200, body: raw}
}

func list(path string, all []object, q url.Values) answer {
	if after := q.Get("starting_after"); after != "" {
		all = all[1+slices.IndexFunc(all, func(o object) bool { return o["id"] == after }):]
	}
	limit, _ := strconv.Atoi(q.Get("limit"))
	page := all[:min(len(all), max(limit, 1))]
	if limit > 3 { // pages are small, so that tests turn them
		page = all[:min(len(all), 3)]
	}
	return reply(object{"object": "list", "url": path, "data": append([]object{}, page...), "has_more": len(page) < len(all)})
}

var (
	invoicePath  = regexp.MustCompile(`^/v1/invoices/(in_\d+)(?:/(\w+))?$`)
	customerPath = regexp.MustCompile(`^/v1/customers/(cus_\d+)$`)
	searchQuery  = regexp.MustCompile(`^metadata\['quotad_customer'\]:'((?:[^'\\]|\\.)*)'$`)
)

// do does a request whose shape is right.
func (l *ledger) do(r *http.Request, body []byte, shape answer) answer {
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return wrong(err.Error())
	}
	if l.refuse != nil {
		if a := l.refuse(r, form); a != nil {
			return *a
		}
	}
	var made object
	_ = json.Unmarshal(shape.body, &made)
	q, path := r.URL.Query(), r.URL.Path
	switch what := r.Method + " " + path; {
	case what == "GET /v1/account":
		made["id"] = l.account
		return reply(made)
	case what == "POST /v1/customers":
		made["id"] = l.id("cus")
		made["metadata"], made["created"] = metadata(form, "metadata"), time.Now().Unix()
		l.born[made["id"].(string)] = l.requests
		l.customers = append(l.customers, made)
		return reply(made)
	case what == "GET /v1/customers/search":
		return l.search(q.Get("query"))
	case customerPath.MatchString(path) && r.Method == "POST":
		c := byID(l.customers, customerPath.FindStringSubmatch(path)[1])
		if c == nil {
			return gone("customer")
		}
		c["name"], c["line1"], c["country"] = form.Get("name"), form.Get("address[line1]"), form.Get("address[country]")
		return reply(c)
	case what == "POST /v1/invoices":
		return l.create(form, made)
	case what == "GET /v1/invoices":
		from, _ := strconv.ParseInt(q.Get("created[gte]"), 10, 64)
		return list(path, newest(l.invoices, func(o object) bool {
			return o["deleted"] != true && o["customer"] == q.Get("customer") && o["created"].(int64) >= from
		}), q)
	case invoicePath.MatchString(path):
		m := invoicePath.FindStringSubmatch(path)
		in := byID(l.invoices, m[1])
		if in == nil {
			return gone("invoice")
		}
		return l.invoice(r.Method, m[2], in, form, q, path)
	case what == "POST /v1/credit_notes":
		return l.credit(form, made)
	case what == "GET /v1/events":
		from, _ := strconv.ParseInt(q.Get("created[gte]"), 10, 64)
		types := q["types[]"]
		if len(types) == 0 {
			for i := 0; q.Has(fmt.Sprintf("types[%d]", i)); i++ {
				types = append(types, q.Get(fmt.Sprintf("types[%d]", i)))
			}
		}
		return list(path, newest(l.events, func(o object) bool {
			return o["created"].(int64) >= from && slices.Contains(types, o["type"].(string))
		}), q)
	case what == "GET /v1/invoice_payments" && q.Has("invoice"):
		in := byID(l.invoices, q.Get("invoice"))
		if in == nil || in["charged"] != true {
			return list(path, nil, q)
		}
		return list(path, []object{{"id": "inpay_1", "object": "invoice_payment", "amount_paid": in["amount_paid"], "payment": object{"type": "payment_intent"}}}, q)
	case what == "GET /v1/invoice_payments":
		in := byID(l.invoices, "in_"+strings.TrimPrefix(q.Get("payment[payment_intent]"), "pi_"))
		if in == nil {
			return list(path, nil, q)
		}
		return list(path, []object{{"id": "inpay_1", "object": "invoice_payment", "invoice": in}}, q)
	}
	return wrong("the ledger knows no " + r.Method + " " + path)
}

func (l *ledger) id(kind string) string {
	l.n++
	return fmt.Sprintf("%s_%d", kind, l.n)
}

func byID(all []object, id string) object {
	i := slices.IndexFunc(all, func(o object) bool { return o["id"] == id })
	if i < 0 {
		return nil
	}
	return all[i]
}

func newest(all []object, is func(object) bool) (chosen []object) {
	for _, o := range slices.Backward(all) {
		if is(o) {
			chosen = append(chosen, o)
		}
	}
	return chosen
}

func metadata(form url.Values, at string) map[string]string {
	found := map[string]string{}
	for name, values := range form {
		if rest, ok := strings.CutPrefix(name, at+"["); ok && strings.HasSuffix(rest, "]") && !strings.Contains(rest, "[") {
			found[strings.TrimSuffix(rest, "]")] = values[0]
		}
	}
	return found
}

func (l *ledger) tell(kind string, of object) object {
	e := object{
		"id": l.id("evt"), "object": "event", "type": kind, "created": time.Now().Unix(), "livemode": false,
		"api_version": "2020-08-27", "data": object{"object": maps.Clone(of)},
	}
	l.events = append(l.events, e)
	return e
}

// of are the invoices that stand for one of quotad's, without deleted ones.
func (l *ledger) of(id string) (found []object) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ofLocked(id)
}

func (l *ledger) ofLocked(id string) (found []object) {
	for _, in := range l.invoices {
		if in["metadata"].(map[string]string)[metaInvoice] == id && in["deleted"] != true {
			found = append(found, maps.Clone(in))
		}
	}
	return found
}

// with lets a test do what people do at Stripe to the one invoice that stands for one of quotad's.
func (l *ledger) with(t *testing.T, id string, f func(in object)) {
	t.Helper()
	found := l.of(id)
	if len(found) != 1 {
		t.Fatalf("Stripe has %d invoices of %s", len(found), id)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	f(byID(l.invoices, found[0]["id"].(string)))
}

// collect has Stripe paid what remains of an invoice, and returns the event.
func (l *ledger) collect(t *testing.T, id string) (event object) {
	t.Helper()
	l.with(t, id, func(in object) {
		if in["status"] != "open" {
			t.Errorf("invoice %s is %s and is paid", id, in["status"])
		}
		in["charged"] = true
		l.settle(in)
		event = l.events[len(l.events)-1]
	})
	return event
}
