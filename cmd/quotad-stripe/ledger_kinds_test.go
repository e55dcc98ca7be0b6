package main

import (
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"time"
)

func (l *ledger) search(query string) answer {
	m := searchQuery.FindStringSubmatch(query)
	if m == nil {
		return wrong("the query cannot be read: " + query)
	}
	key := regexp.MustCompile(`\\(.)`).ReplaceAllString(m[1], "$1")
	data := []object{}
	for _, c := range l.customers {
		if c["metadata"].(map[string]string)[metaCustomer] == key && l.requests-l.born[c["id"].(string)] > l.searchLag {
			data = append(data, c)
		}
	}
	return reply(object{"object": "search_result", "url": "/v1/customers/search", "data": data, "has_more": false})
}

func (l *ledger) create(form url.Values, made object) answer {
	if byID(l.customers, form.Get("customer")) == nil {
		return gone("customer")
	}
	if number := form.Get("number"); number != "" && slices.ContainsFunc(l.invoices, func(o object) bool { return o["number"] == number }) {
		return wrong("the number " + number + " is taken")
	}
	if _, given := form["discounts"]; !given || form.Get("auto_advance") != "false" {
		return wrong("an invoice may take a discount, or be finalized without its items")
	}
	made["id"], made["customer"], made["currency"] = l.id("in"), form.Get("customer"), form.Get("currency")
	made["metadata"], made["number"], made["status"] = metadata(form, "metadata"), form.Get("number"), "draft"
	made["created"], made["livemode"], made["due_date"] = time.Now().Unix(), false, form.Get("due_date")
	made["days_until_due"], made["collection_method"] = form.Get("days_until_due"), form.Get("collection_method")
	delete(made, "due_date")
	made["asked_due_date"] = form.Get("due_date")
	l.sums(made, 0)
	l.invoices = append(l.invoices, made)
	return reply(made)
}

// sums writes the amounts of an invoice of which so much is paid and nothing credited.
func (l *ledger) sums(in object, paid int64) {
	var total int64
	for _, line := range l.lines[in["id"].(string)] {
		total += line["amount"].(int64)
	}
	in["total"], in["amount_due"], in["amount_paid"], in["amount_remaining"] = total, total, paid, total-paid
}

func (l *ledger) invoice(method, verb string, in object, form, q url.Values, path string) answer {
	id, status := in["id"].(string), in["status"].(string)
	if in["deleted"] == true && method != "GET" {
		return gone("invoice")
	}
	switch method + " " + verb {
	case "GET ":
		if in["deleted"] == true {
			return gone("invoice")
		}
	case "GET lines":
		return list(path, l.lines[id], q)
	case "POST ":
		kept := maps.Clone(in["metadata"].(map[string]string))
		maps.Copy(kept, metadata(form, "metadata"))
		in["metadata"] = kept
	case "DELETE ":
		if status != "draft" {
			return wrong("only drafts are deleted")
		}
		in["deleted"], in["number"] = true, ""
		return reply(object{"id": id, "object": "invoice", "deleted": true})
	case "POST add_lines":
		if status != "draft" {
			return wrong("lines are added to drafts only")
		}
		for i := 0; form.Has(fmt.Sprintf("lines[%d][amount]", i)); i++ {
			at := fmt.Sprintf("lines[%d]", i)
			amount, _ := strconv.ParseInt(form.Get(at+"[amount]"), 10, 64)
			l.lines[id] = append(l.lines[id], object{
				"id": l.id("il"), "object": "line_item", "amount": amount, "description": form.Get(at + "[description]"),
				"metadata": metadata(form, at+"[metadata]"),
			})
		}
		if len(l.lines[id]) > maxItems {
			return wrong("an invoice has at most 250 items")
		}
		l.sums(in, 0)
	case "POST finalize":
		if status != "draft" || form.Get("auto_advance") != "true" {
			return wrong("only drafts are finalized, to be collected")
		}
		in["status"] = "open"
	case "POST void":
		if status != "open" && status != "uncollectible" {
			return wrong("an invoice that is " + status + " is not voided")
		}
		in["status"] = "void"
		l.tell("invoice.voided", in)
	case "POST pay":
		if status != "open" && status != "uncollectible" || form.Get("paid_out_of_band") != "true" {
			return wrong("only open invoices are paid, and nothing is charged here")
		}
		l.settle(in)
	default:
		return wrong("the ledger knows no " + method + " " + path)
	}
	return reply(in)
}

// settle has what remains of an invoice paid.
func (l *ledger) settle(in object) {
	in["amount_paid"] = in["amount_paid"].(int64) + in["amount_remaining"].(int64)
	in["amount_remaining"], in["status"] = int64(0), "paid"
	l.tell("invoice.paid", in)
}

func (l *ledger) credit(form url.Values, made object) answer {
	in := byID(l.invoices, form.Get("invoice"))
	amount, _ := strconv.ParseInt(form.Get("amount"), 10, 64)
	if in == nil || in["status"] != "open" || amount < 1 || amount > in["amount_remaining"].(int64) || form.Get("email_type") != "none" {
		return wrong("the note does not fit")
	}
	made["id"], made["invoice"], made["amount"], made["metadata"] = l.id("cn"), in["id"], amount, metadata(form, "metadata")
	in["amount_remaining"] = in["amount_remaining"].(int64) - amount
	l.notes = append(l.notes, made)
	if in["amount_remaining"] == int64(0) {
		in["status"] = "paid"
		l.tell("invoice.paid", in)
	}
	return reply(made)
}
