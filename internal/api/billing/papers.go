package billing

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"quotad/internal/api/apidoc"
	"quotad/internal/api/problem"
	"quotad/internal/api/request"
	"quotad/internal/api/respond"
	"quotad/internal/api/serve"
	"quotad/internal/billing"
	"quotad/internal/billing/document"
	"quotad/internal/calendar"
	"quotad/internal/quota/queue"
)

// This file serves invoices as documents. Dates use the customer's timezone at the invoice's finalization.
// Therefore an invoice that was sent can be generated again with the same bytes, whatever happens to its
// customer.

var (
	htmlType = []string{"text/html; charset=utf-8"}
	csvType  = []string{"text/csv; charset=utf-8"}
	pdfType  = []string{"application/pdf"}
)

func (s *Room) paperRoutes() []serve.Route {
	get := func(pattern, id, summary, media string, params []apidoc.Param, raw func(http.ResponseWriter, *http.Request, serve.Params) int) serve.Route {
		return serve.Route{Operation: apidoc.Operation{
			Method: "GET", Pattern: pattern, Access: apidoc.Readers, Tag: "Billing", ID: id, Summary: summary,
			Params: params, Media: media, Status: serve.OK200, Problems: []*problem.Kind{problem.KindNotFound},
		}, Raw: raw}
	}
	list := get("/v1/invoices.csv", "invoices.listCSV", "List invoices, as CSV", "text/csv", invoiceParams, s.invoicesCSV)
	list.Sends = map[int][]string{http.StatusOK: {"Link"}}
	return []serve.Route{
		list,
		get("/v1/invoices/{id}.html", "invoices.getHTML", "Get an invoice, as a page", "text/html", nil, s.invoiceAs(htmlType,
			func(i *billing.Invoice) ([]byte, error) { return document.HTML(i, zoneOf(i)) })),
		get("/v1/invoices/{id}.csv", "invoices.getCSV", "Get an invoice's lines, as CSV", "text/csv", nil, s.invoiceAs(csvType, document.CSV)),
		get("/v1/invoices/{id}.pdf", "invoices.getPDF", "Get an invoice, as PDF", "application/pdf", nil, s.invoiceAs(pdfType,
			func(i *billing.Invoice) ([]byte, error) { return document.PDF(i, zoneOf(i)) })),
	}
}

// zoneOf returns the timezone of an invoice's dates, or UTC if the program no longer knows the timezone.
func zoneOf(i *billing.Invoice) *time.Location {
	zone, err := calendar.Location(i.Zone)
	if err != nil {
		return time.UTC
	}
	return zone
}

// invoiceAs returns a handler that serves an invoice in one format.
func (s *Room) invoiceAs(media []string, draw func(*billing.Invoice) ([]byte, error)) func(http.ResponseWriter, *http.Request, serve.Params) int {
	return func(w http.ResponseWriter, r *http.Request, p serve.Params) int {
		return s.servePaper(w, r, p.From, media, func(ctx context.Context) ([]byte, error) {
			id, err := request.PathValue(r, "id")
			if err != nil {
				return nil, err
			}
			invoice, err := s.Invoices.Invoice(ctx, id)
			if err != nil {
				return nil, err
			}
			return s.drawn(ctx, p.From, func() ([]byte, error) { return draw(invoice) })
		})
	}
}

// invoicesCSV serves a page of invoices as CSV. Its Link header contains the next page.
func (s *Room) invoicesCSV(w http.ResponseWriter, r *http.Request, p serve.Params) int {
	return s.servePaper(w, r, p.From, csvType, func(ctx context.Context) ([]byte, error) {
		filter, err := filterOf(p.Query)
		if err != nil {
			return nil, err
		}
		page, err := s.Invoices.Invoices(ctx, filter, p.Query.Page())
		if err != nil {
			return nil, err
		}
		if page.Next != "" {
			next := r.URL.Query()
			next.Set("cursor", page.Next)
			w.Header().Set("Link", "<"+(&url.URL{Path: r.URL.Path, RawQuery: next.Encode()}).String()+`>; rel="next"`)
		}
		items := make([]billing.Invoice, len(page.Items))
		for i, item := range page.Items {
			items[i] = *item
		}
		return s.drawn(ctx, p.From, func() ([]byte, error) { return document.InvoicesCSV(items) })
	})
}

// drawn generates a document in one of the places for encoding answers, because a document needs milliseconds of
// processor time.
func (s *Room) drawn(ctx context.Context, from queue.SenderID, draw func() ([]byte, error)) ([]byte, error) {
	if err := s.Processing.Take(ctx, from); err != nil {
		return nil, err
	}
	defer s.Processing.GiveBack()
	return draw()
}

// paper returns the document that draw generates, using one of the places for reading.
func (s *Room) paper(ctx context.Context, from queue.SenderID, draw func(context.Context) ([]byte, error)) ([]byte, error) {
	if err := s.Reading.Take(ctx, from); err != nil {
		return nil, err
	}
	defer s.Reading.GiveBack()
	return draw(ctx)
}

func (s *Room) servePaper(w http.ResponseWriter, r *http.Request, from queue.SenderID, media []string, draw func(context.Context) ([]byte, error)) int {
	ctx, cancel := s.InTime(r)
	defer cancel()
	paper, err := s.paper(ctx, from, draw)
	if err != nil {
		return s.Fail(w, r, err)
	}
	h := w.Header()
	h.Set("Content-Security-Policy", document.HTMLPolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	return respond.Write(w, http.StatusOK, media, paper)
}
