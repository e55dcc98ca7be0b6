package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"text/tabwriter"
	"time"
)

// statusCmd prints the state. It does not lock the file, so a bridge may be running.
type statusCmd struct {
	State string `placeholder:"FILE" default:"quotad-stripe.json" help:"The state file."`
}

func (c *statusCmd) run(_ context.Context, p *program) error {
	s, err := readState(c.State)
	if err != nil {
		return err
	}
	fmt.Fprintf(p.stdout, "Stripe: %s mode %s\nlast event of quotad's: %d\nopen at Stripe: %d\nwaiting: %d\nnotices: %d\n",
		s.Mode, s.Account, s.Cursor, len(s.Open), len(s.Work), len(s.Notices))
	w := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	for _, id := range slices.Sorted(maps.Keys(s.Work)) {
		if j := s.Work[id]; j.Tries > 0 {
			fmt.Fprintf(w, "\nfails\t%s\tsince %s, %d tries, next %s: %s", id, j.Since.Format(time.RFC3339), j.Tries, j.Next.Format(time.RFC3339), j.Error)
		}
	}
	for _, n := range s.Notices {
		fmt.Fprintf(w, "\nnotice\t%q\t%s %s %s: %s", n.ID, n.At.Format(time.RFC3339), n.Invoice, n.Stripe, n.Text)
	}
	fmt.Fprintln(w)
	return w.Flush()
}

// dismissCmd removes a notice from the list.
type dismissCmd struct {
	State string `placeholder:"FILE" default:"quotad-stripe.json" help:"The state file."`
	ID    string `arg:"" help:"The id of the notice, as status prints it."`
}

func (c *dismissCmd) run(_ context.Context, _ *program) error {
	s, fresh, err := openStore(c.State)
	if err != nil {
		return err
	}
	defer s.close()
	if fresh {
		return fmt.Errorf("there is no state file %s", c.State)
	}
	before, after := 0, 0
	s.change(func(st *state) {
		before = len(st.Notices)
		st.Notices = slices.DeleteFunc(st.Notices, func(n notice) bool { return n.ID == c.ID })
		after = len(st.Notices)
	})
	if before == after {
		return fmt.Errorf("there is no notice %q: `quotad-stripe status` prints them", c.ID)
	}
	return s.save()
}
