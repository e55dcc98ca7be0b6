package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// stateFormat is the form of the state file. A bridge refuses a newer one than its own.
const stateFormat = 1

// maxNotices bounds the list for people. The oldest go first; the log has had them.
const maxNotices = 1000

// state is what the bridge keeps between two starts. What it knows of Stripe is a memory of what
// can be found there again by metadata. The cursor and the work are no such thing: they are written
// together, so that no event is passed over whose work is not noted.
type state struct {
	Format  int    `json:"format"`
	Mode    string `json:"stripe_mode"`
	Account string `json:"stripe_account,omitempty"` // empty: the key may not read it

	Cursor int64      `json:"cursor"`          // the last event of quotad's that was read
	Last   *lastEvent `json:"last_event"`      // what it was; nil: none was read
	Seen   time.Time  `json:"last_event_seen"` // when quotad showed it last

	StripeSince int64            `json:"stripe_since"` // Unix seconds of the newest event of Stripe's that was handled
	StripeSeen  map[string]int64 `json:"stripe_seen"`  // events near it that were handled, with their seconds

	Customers map[string]*customer `json:"customers"` // by quotad's key
	Open      map[string]string    `json:"open"`      // invoices that are not settled at Stripe: quotad's id → Stripe's
	Work      map[string]*job      `json:"work"`      // invoices to be looked at, by quotad's id
	Notices   []notice             `json:"notices"`   // what a person has to see to, the oldest first
}

// lastEvent tells an event from another one with the same id: a restored database may give an id
// again, and another installation has the same ones.
type lastEvent struct {
	Type string    `json:"type"`
	At   time.Time `json:"at"`
}

// customer is a customer at Stripe.
type customer struct {
	ID    string `json:"id"`
	Made  bool   `json:"made,omitempty"`  // by the bridge, which then keeps its name and address
	Buyer string `json:"buyer,omitempty"` // a hash of what Stripe was told of the buyer
}

// job is an invoice that may not agree on both sides.
type job struct {
	Gen     int64     `json:"gen"`     // rises as it is asked for again
	Refused int       `json:"refused"` // how often Stripe has refused: each time the idempotency keys change
	Tries   int       `json:"tries"`
	Next    time.Time `json:"next"` // not before
	Since   time.Time `json:"since"`
	Error   string    `json:"error,omitempty"` // of the last try
}

// notice is something that the bridge leaves to a person.
type notice struct {
	ID      string    `json:"id"`
	At      time.Time `json:"at"`
	Invoice string    `json:"invoice,omitempty"` // quotad's
	Stripe  string    `json:"stripe,omitempty"`  // the object there
	Text    string    `json:"text"`
}

// store is the state and its file. It is safe for concurrent use.
type store struct {
	path string
	lock *os.File

	mu    sync.Mutex
	state state
	dirty bool
}

func newState() state {
	return state{
		Format: stateFormat, StripeSeen: map[string]int64{}, Customers: map[string]*customer{},
		Open: map[string]string{}, Work: map[string]*job{},
	}
}

// openStore locks the file and reads it. fresh: there was none.
func openStore(path string) (s *store, fresh bool, err error) {
	lock, err := lockFile(path + ".lock")
	if err != nil {
		return nil, false, err
	}
	s = &store{path: path, lock: lock}
	s.state, err = readState(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		s.state, fresh = newState(), true
	case err != nil:
		s.close()
		return nil, false, err
	}
	return s, fresh, nil
}

func readState(path string) (state, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return state{}, err
	}
	s := newState()
	if err := json.Unmarshal(raw, &s); err != nil {
		return state{}, fmt.Errorf("the state file %s cannot be read: move it away and run with --start=all, which finds at Stripe what is there: %w", path, err)
	}
	if s.Format != stateFormat {
		return state{}, fmt.Errorf("the state file %s has format %d, and this bridge knows %d: run the version that wrote it", path, s.Format, stateFormat)
	}
	return s, nil
}

func (s *store) close() { _ = s.lock.Close() } // the lock goes with it

// save writes the state, if it has changed since it was last written. After it, the file is on the
// disk, whole: a crash leaves the old one or the new one.
func (s *store) save() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.saveLocked()
}

func (s *store) saveLocked() error {
	if !s.dirty {
		return nil
	}
	raw, err := json.MarshalIndent(&s.state, "", " ")
	if err != nil {
		return err
	}
	if err := replaceFile(s.path, raw); err != nil {
		return fmt.Errorf("write the state file: %w", err)
	}
	s.dirty = false
	return nil
}

func replaceFile(path string, raw []byte) error {
	temporary := path + ".new"
	file, err := os.OpenFile(temporary, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(raw)
	err = errors.Join(err, file.Sync())
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	if err := os.Rename(temporary, path); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// change changes the state in memory. save writes it.
func (s *store) change(f func(*state)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.state)
	s.dirty = true
}

// read looks at the state.
func (s *store) read(f func(*state)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.state)
}

// ask notes that an invoice is to be looked at now.
func (s *state) ask(invoice string, now time.Time) {
	j := s.Work[invoice]
	if j == nil {
		j = &job{Since: now}
		s.Work[invoice] = j
	}
	j.Gen++
	j.Next = now
}

// tell adds a notice, unless it is there. It reports whether it added one.
func (s *state) tell(n notice) bool {
	if slices.ContainsFunc(s.Notices, func(old notice) bool { return old.ID == n.ID }) {
		return false
	}
	s.Notices = append(s.Notices, n)
	s.Notices = s.Notices[max(0, len(s.Notices)-maxNotices):]
	return true
}
