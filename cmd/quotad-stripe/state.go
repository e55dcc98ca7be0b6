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

// stateFormat is the format version of the state file. A bridge rejects another version.
const stateFormat = 1

// maxNotices is the maximum number of stored notices. The oldest notices are dropped first; the log contains all
// notices.
const maxNotices = 1000

// state is the data that the bridge keeps between two starts. Its data about Stripe is a cache, which the bridge
// can rebuild from Stripe's metadata. The cursor and the work cannot be rebuilt. They are saved together, so the
// cursor never skips an event whose work is not saved.
type state struct {
	Format  int    `json:"format"`
	Mode    string `json:"stripe_mode"`
	Account string `json:"stripe_account,omitempty"` // empty if the key may not read the account

	Cursor int64      `json:"cursor"`          // the id of the last event that was read from quotad
	Last   *lastEvent `json:"last_event"`      // the last event that was read; nil if no event was read
	Seen   time.Time  `json:"last_event_seen"` // the last time at which quotad returned this event

	StripeSince int64            `json:"stripe_since"` // Unix seconds of the newest handled event of Stripe
	StripeSeen  map[string]int64 `json:"stripe_seen"`  // handled events near StripeSince, with their Unix seconds

	Customers map[string]*customer `json:"customers"` // by quotad's key
	Open      map[string]string    `json:"open"`      // invoices not settled at Stripe: quotad's id → Stripe's id
	Work      map[string]*job      `json:"work"`      // invoices to be settled, by quotad's id
	Notices   []notice             `json:"notices"`   // notices that a person must handle, oldest first
}

// lastEvent distinguishes an event from another event with the same id. A restored database may assign an id
// again, and another installation uses the same ids.
type lastEvent struct {
	Type string    `json:"type"`
	At   time.Time `json:"at"`
}

// customer is a customer at Stripe.
type customer struct {
	ID    string `json:"id"`
	Made  bool   `json:"made,omitempty"`  // created by the bridge, which then updates name and address
	Buyer string `json:"buyer,omitempty"` // a hash of the buyer's data that was sent to Stripe
}

// job is an invoice that may differ between quotad and Stripe.
type job struct {
	Gen     int64     `json:"gen"`     // increases when the invoice is queued again
	Refused int       `json:"refused"` // the number of rejections by Stripe; each changes the idempotency keys
	Tries   int       `json:"tries"`
	Next    time.Time `json:"next"` // the earliest time of the next try
	Since   time.Time `json:"since"`
	Error   string    `json:"error,omitempty"` // the error of the last try
}

// notice is a problem that a person must resolve.
type notice struct {
	ID      string    `json:"id"`
	At      time.Time `json:"at"`
	Invoice string    `json:"invoice,omitempty"` // the id of quotad's invoice
	Stripe  string    `json:"stripe,omitempty"`  // the id of the object at Stripe
	Text    string    `json:"text"`
}

// store contains the state and its file. It is safe for concurrent use.
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

// openStore locks the file and reads it. fresh reports that the file did not exist.
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

// save writes the state to the disk if it has changed since the last save. After a crash, the disk contains
// either the old file or the new file, always complete.
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

// change modifies the state in memory. save writes it to the file.
func (s *store) change(f func(*state)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.state)
	s.dirty = true
}

// read calls f with the state, which f must not modify.
func (s *store) read(f func(*state)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.state)
}

// ask queues an invoice to be settled now.
func (s *state) ask(invoice string, now time.Time) {
	j := s.Work[invoice]
	if j == nil {
		j = &job{Since: now}
		s.Work[invoice] = j
	}
	j.Gen++
	j.Next = now
}

// tell adds a notice unless a notice with its id exists. It reports whether it added the notice.
func (s *state) tell(n notice) bool {
	if slices.ContainsFunc(s.Notices, func(old notice) bool { return old.ID == n.ID }) {
		return false
	}
	s.Notices = append(s.Notices, n)
	s.Notices = s.Notices[max(0, len(s.Notices)-maxNotices):]
	return true
}
