package api

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"quotad/internal/testkit"
	"quotad/internal/testkit/oracle"
)

// expected is what the oracle says of all invoices and credits.
func (c *guest) expected() string {
	all := []string{}
	for _, i := range c.Invoices() {
		all = append(all, i.Show().String())
	}
	slices.Sort(all)
	credits := []string{}
	for _, k := range c.Credits() {
		credits = append(credits, fmt.Sprintf("credit %s %s %d left %d\n", k.ID, k.Kind, k.Minor, k.Left))
	}
	slices.Sort(credits)
	return strings.Join(append(all, credits...), "")
}

// yearInvoice is an invoice in the node's answer.
type yearInvoice struct {
	ID, Number, Of, Held string
	shown                oracle.Shown
}

func (i *yearInvoice) UnmarshalJSON(text []byte) error {
	var also struct {
		ID, Number, Of, Held *string
		Lines                []struct {
			Of *string `json:"of_invoice"`
		}
	}
	if err := json.Unmarshal(text, &also); err != nil {
		return err
	}
	for _, member := range []struct {
		to   *string
		from *string
	}{{&i.ID, also.ID}, {&i.Number, also.Number}, {&i.Of, also.Of}, {&i.Held, also.Held}} {
		if member.from != nil {
			*member.to = *member.from
		}
	}
	if err := json.Unmarshal(text, &i.shown); err != nil {
		return err
	}
	for n, l := range also.Lines {
		if l.Of != nil {
			i.shown.Lines[n].Of = *l.Of // its id, for now
		}
	}
	return nil
}

// invoices are those of the node. References are named as the oracle names them.
func (c *guest) invoices() []yearInvoice {
	var page struct {
		Items      []yearInvoice `json:"items"`
		NextCursor *string       `json:"next_cursor"`
	}
	c.group.read(c.path+"/invoices?limit=1000", &page)
	names := map[string]string{"": ""}
	for _, i := range page.Items {
		names[i.ID] = oracle.NameOf(i.shown.Kind, i.shown.PeriodStart, i.shown.PeriodEnd)
	}
	for n := range page.Items {
		s := &page.Items[n].shown
		s.Of = names[page.Items[n].Of]
		for k := range s.Lines {
			s.Lines[k].Of = names[s.Lines[k].Of]
		}
	}
	return page.Items
}

// found is what the node says of all invoices and credits, in the oracle's words.
func (c *guest) found() (string, []yearInvoice) {
	invoices := c.invoices()
	all := []string{}
	for _, i := range invoices {
		all = append(all, i.shown.String())
	}
	slices.Sort(all)
	var listed struct {
		Balances []struct {
			ID, Kind    string
			AmountMinor int64 `json:"amount_minor"`
			LeftMinor   int64 `json:"left_minor"`
		}
	}
	c.group.read(c.path+"/credits", &listed)
	credits := []string{}
	for _, k := range listed.Balances {
		if k.Kind == "carried" {
			k.ID = "" // the node's own
		}
		credits = append(credits, fmt.Sprintf("credit %s %s %d left %d\n", k.ID, k.Kind, k.AmountMinor, k.LeftMinor))
	}
	slices.Sort(credits)
	return strings.Join(append(all, credits...), ""), invoices
}

// compare holds the node's invoices against the oracle's. What is due may be under way still.
func (c *guest) compare() {
	c.group.t.Helper()
	want := c.expected()
	c.was = want
	var got string
	var invoices []yearInvoice
	testkit.Eventually(c.group.t, "all that is due is done", func() bool {
		behind := c.behind() // asked first, as it may be done right after
		got, invoices = c.found()
		return got == want || !behind
	})
	if got != want {
		c.fail("in %+v\n%s", c.Terms(), difference(want, got))
	}
	c.know(invoices)
}

// know notes the node's ids and numbers of the oracle's invoices.
func (c *guest) know(invoices []yearInvoice) {
	ids := map[string][]string{}
	for _, i := range invoices {
		text := i.shown.String()
		ids[text] = append(ids[text], i.ID)
		switch of, taken := c.group.number[i.Number]; {
		case (i.Number == "") != (i.shown.Status == "draft"), taken && i.Number != "" && of != i.ID:
			c.group.t.Fatalf("%s: number %q of %s, which %s has", c.Key, i.Number, text, of)
		case i.Number != "":
			c.group.number[i.Number] = i.ID
			if !taken {
				c.addsUp(i)
			}
		}
	}
	for _, i := range c.Invoices() {
		text := i.Show().String()
		if c.ids[i] != "" && slices.Contains(ids[text], c.ids[i]) {
			continue
		}
		for _, id := range ids[text] {
			c.ids[i] = id
		}
	}
}

// addsUp computes each line of an invoice or credit note from its paper alone.
func (c *guest) addsUp(i yearInvoice) {
	c.group.t.Helper()
	_, page, _ := c.group.text("GET", "/v1/invoices/"+i.ID+".html", "")
	lines, err := oracle.OnPaper(page, c.Exponent)
	if err != nil {
		c.fail("%s: %v", i.ID, err)
	}
	for _, line := range lines {
		if line.Minor != line.Printed {
			c.fail("the paper of %s prints %d, and its words come to %d: %s", i.ID, line.Printed, line.Minor, line.Words)
		}
		c.group.done("line of a paper computed from " + line.From)
	}
}

// behind reports whether the node has not done all that is due.
func (c *guest) behind() (is bool) {
	c.group.t.Helper()
	check(c.group.t, c.group.store.Pool().QueryRow(testkit.Context(c.group.t), `SELECT EXISTS (SELECT FROM open_periods o JOIN customers c ON c.id = o.customer_id
		WHERE c.key = $1 AND (o.due_at <= $2 OR EXISTS (SELECT FROM owed_calls k WHERE k.customer_id = c.id)))`, c.Key, c.Clock.Now).Scan(&is))
	return is
}

// difference shows the invoices and credits that only one side has.
func difference(want, got string) string {
	w, g := blocks(want), blocks(got)
	b := new(strings.Builder)
	for _, side := range []struct {
		name       string
		has, lacks []string
	}{{"the oracle", w, g}, {"the node", g, w}} {
		for _, block := range side.has {
			if !slices.Contains(side.lacks, block) {
				fmt.Fprintf(b, "only %s has: %s", side.name, block)
			}
		}
	}
	return b.String()
}

// blocks divides a text into invoices and credits.
func blocks(text string) (all []string) {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, " ") {
			all[len(all)-1] += line
		} else {
			all = append(all, line)
		}
	}
	return all
}

// numbers checks that the numbers of each seller have no gap.
func (y *year) numbers() {
	for seller, prefix := range yearSellers {
		all := map[string]bool{}
		for number := range y.number {
			if rest, ok := strings.CutPrefix(number, prefix); ok && (prefix != "" || !strings.Contains(number, "-")) {
				all[rest] = true
			}
		}
		for n := 1; n <= len(all); n++ {
			if !all[strconv.Itoa(n)] {
				y.t.Errorf("of %d numbers of %s, %d is missing", len(all), seller, n)
			}
		}
	}
	y.t.Logf("%d invoices", len(y.number))
}

// empty checks that the node's own reconcile finds nothing.
func (g *group) empty() {
	var report struct {
		OK bool `json:"ok"`
	}
	if got := g.call(200, "GET", "/v1/reconcile", nil).text; json.Unmarshal([]byte(got), &report) != nil || !report.OK {
		g.t.Fatalf("reconcile at %s (step %d): %s", stamp(g.clock.Now), g.steps, got)
	}
	g.done("reconcile")
}
