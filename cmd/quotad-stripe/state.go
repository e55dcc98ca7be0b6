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

// stateFormat is the version of the state file's format. A bridge rejects a newer format.
const stateFormat = 1

// maxNotices is the maximum number of notices for people. The oldest notices are removed first, and the log
// contains all of them.
const maxNotices = 1000

// state is the data that the bridge keeps between two starts. Its data about Stripe is only a cache, because the
// bridge can find the objects again by their metadata. The cursor and the work cannot be restored, so they are
// written together, and no event is skipped whose work is not recorded.
type state struct {
	Format  int    `json:"format"`
	Mode    string `json:"stripe_mode"`
	Account string `json:"stripe_account,omitempty"` // empty if the key may not read it

	Cursor int64      `json:"cursor"`          // the last event of quotad's that was read
	Last   *lastEvent `json:"last_event"`      // identity of that event; nil if no event was read
	Seen   time.Time  `json:"last_event_seen"` // time at which quotad returned it last

	StripeSince int64            `json:"stripe_since"` // Unix seconds of the newest handled event of Stripe's
	StripeSeen  map[string]int64 `json:"stripe_seen"`  // handled events near that time, with their seconds

	Customers map[string]*customer `json:"customers"` // keyed by quotad's key
	Open      map[string]string    `json:"open"`      // unsettled invoices at Stripe: quotad's id → Stripe's id
	Work      map[string]*job      `json:"work"`      // invoices to process, by quotad's id
	Notices   []notice             `json:"notices"`   // notices for a person, the oldest first
}

// lastEvent distinguishes an event from another event with the same id, because a restored database may reuse an
// id, and another installation uses the same ids.
type lastEvent struct {
	Type string    `json:"type"`
	At   time.Time `json:"at"`
}

// customer is a customer at Stripe.
type customer struct {
	ID    string `json:"id"`
	Made  bool   `json:"made,omitempty"`  // created by the bridge, which then updates its name and address
	Buyer string `json:"buyer,omitempty"` // hash of the buyer's data that was sent to Stripe
}

// job is an invoice that may not agree on both sides.
type job struct {
	Gen     int64     `json:"gen"`     // incremented at each new request
	Refused int       `json:"refused"` // number of rejections by Stripe, each of which changes the idempotency keys
	Tries   int       `json:"tries"`
	Next    time.Time `json:"next"` // earliest time of the next try
	Since   time.Time `json:"since"`
	Error   string    `json:"error,omitempty"` // error of the last try
}

// notice is a problem that the bridge leaves to a person.
type notice struct {
	ID      string    `json:"id"`
	At      time.Time `json:"at"`
	Invoice string    `json:"invoice,omitempty"` // id of the invoice in quotad
	Stripe  string    `json:"stripe,omitempty"`  // id of the object at Stripe
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

// openStore locks the file and reads it. fresh reports that there was no file.
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

func (s *store) close() { _ = s.lock.Close() } // closing the file releases the lock

// save writes the state if it has changed since the last write. Afterwards the complete file is on the disk.
// After a crash, the disk contains either the old file or the new file.
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

// change changes the state in memory. save writes the state to the file.
func (s *store) change(f func(*state)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.state)
	s.dirty = true
}

// read calls f with the state for reading.
func (s *store) read(f func(*state)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.state)
}

// ask records that an invoice must be processed now.
func (s *state) ask(invoice string, now time.Time) {
	j := s.Work[invoice]
	if j == nil {
		j = &job{Since: now}
		s.Work[invoice] = j
	}
	j.Gen++
	j.Next = now
}

// tell adds a notice unless it exists already. It reports whether it added the notice.
func (s *state) tell(n notice) bool {
	if slices.ContainsFunc(s.Notices, func(old notice) bool { return old.ID == n.ID }) {
		return false
	}
	s.Notices = append(s.Notices, n)
	s.Notices = s.Notices[max(0, len(s.Notices)-maxNotices):]
	return true
}
