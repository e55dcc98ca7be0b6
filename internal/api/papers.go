package api

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"quotad/internal/api/apidoc"
	"quotad/internal/api/problem"
	"quotad/internal/api/respond"
	"quotad/internal/billing"
	"quotad/internal/billing/document"
	"quotad/internal/calendar"
	"quotad/internal/quota/queue"
)

// Invoices as documents. Their dates are those of the customer's timezone when the invoice was
// finalized. So an invoice that was sent is drawn again with the same bytes whatever becomes of its
// customer.

var (
	csvType = []string{"text/csv; charset=utf-8"}
	pdfType = []string{"application/pdf"}
)

func paperRoutes() []route {
	get := func(pattern, id, summary, media string, params []apidoc.Param, raw func(*Server, http.ResponseWriter, *http.Request, params) int) route {
		return route{Operation: apidoc.Operation{
			Method: "GET", Pattern: pattern, Access: apidoc.Readers, Tag: "Billing", ID: id, Summary: summary,
			Params: params, Media: media, Status: ok200, Problems: []*problem.Kind{problem.KindNotFound},
		}, raw: raw}
	}
	return []route{
		get("/v1/invoices.csv", "listInvoicesCSV", "List invoices, as CSV", "text/csv", invoiceParams, (*Server).invoicesCSV),
		get("/v1/invoices/{id}.html", "getInvoiceHTML", "Get an invoice, as a page", "text/html", nil, invoiceAs(htmlType,
			func(i *billing.Invoice) ([]byte, error) { return document.HTML(i, zoneOf(i)) })),
		get("/v1/invoices/{id}.csv", "getInvoiceCSV", "Get an invoice's lines, as CSV", "text/csv", nil, invoiceAs(csvType, document.CSV)),
		get("/v1/invoices/{id}.pdf", "getInvoicePDF", "Get an invoice, as PDF", "application/pdf", nil, invoiceAs(pdfType,
			func(i *billing.Invoice) ([]byte, error) { return document.PDF(i, zoneOf(i)) })),
	}
}

// zoneOf is the timezone of an invoice's dates. One that the program does not know any more is UTC.
func zoneOf(i *billing.Invoice) *time.Location {
	zone, err := calendar.Location(i.Zone)
	if err != nil {
		return time.UTC
	}
	return zone
}

// invoiceAs serves an invoice in one form.
func invoiceAs(media []string, draw func(*billing.Invoice) ([]byte, error)) func(*Server, http.ResponseWriter, *http.Request, params) int {
	return func(s *Server, w http.ResponseWriter, r *http.Request, p params) int {
		return s.servePaper(w, r, p.from, media, func(ctx context.Context) ([]byte, error) {
			id, err := pathValue(r, "id")
			if err != nil {
				return nil, err
			}
			invoice, err := s.invoices.Invoice(ctx, id)
			if err != nil {
				return nil, err
			}
			return s.drawn(ctx, p.from, func() ([]byte, error) { return draw(invoice) })
		})
	}
}

// invoicesCSV serves a page of invoices. The header Link leads to the next page.
func (s *Server) invoicesCSV(w http.ResponseWriter, r *http.Request, p params) int {
	return s.servePaper(w, r, p.from, csvType, func(ctx context.Context) ([]byte, error) {
		filter, err := p.query.filter()
		if err != nil {
			return nil, err
		}
		page, err := s.invoices.Invoices(ctx, filter, p.query.page())
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
		return s.drawn(ctx, p.from, func() ([]byte, error) { return document.InvoicesCSV(items) })
	})
}

// drawn takes one of the places for answers that are encoded: a document takes the processor for
// milliseconds.
func (s *Server) drawn(ctx context.Context, from queue.SenderID, draw func() ([]byte, error)) ([]byte, error) {
	if err := s.processing.take(ctx, from); err != nil {
		return nil, err
	}
	defer s.processing.giveBack()
	return draw()
}

// paper is what draw makes, in one of the places for reading.
func (s *Server) paper(ctx context.Context, from queue.SenderID, draw func(context.Context) ([]byte, error)) ([]byte, error) {
	if err := s.reading.take(ctx, from); err != nil {
		return nil, err
	}
	defer s.reading.giveBack()
	return draw(ctx)
}

func (s *Server) servePaper(w http.ResponseWriter, r *http.Request, from queue.SenderID, media []string, draw func(context.Context) ([]byte, error)) int {
	ctx, cancel := s.within(r)
	defer cancel()
	paper, err := s.paper(ctx, from, draw)
	if err != nil {
		return s.fail(w, r, err)
	}
	h := w.Header()
	h.Set("Content-Security-Policy", document.HTMLPolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	return respond.Write(w, http.StatusOK, media, paper)
}
