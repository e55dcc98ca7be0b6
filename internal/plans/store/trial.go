package store

import (
	"context"
	"errors"
)

// Trial returns a store whose writes are dry runs. Instead of committing, a write calls look, which reads
// in the write's transaction, and the transaction is then rolled back. Nodes receive no notification. A
// write with nothing to write calls look, too. Errors are the errors of the write and of look.
func (s *Store) Trial(look func(ctx context.Context, w *Writing) error) *Store {
	options := s.options
	options.Committed = nil
	return &Store{pool: s.pool, writers: s.writers, options: options, look: look}
}

// try runs a write and then calls look on the result. The caller rolls back.
func (s *Store) try(ctx context.Context, w *Writing, do func(ctx context.Context, w *Writing) error) error {
	outer := w.Tx
	inner, err := outer.Begin(ctx)
	if err != nil {
		return err
	}
	w.Tx = inner
	if err = do(ctx, w); errors.Is(err, errUnchanged) { // do may have begun to write
		err = inner.Rollback(ctx)
		w.Tx = outer
	}
	if err == nil {
		err = s.look(ctx, w)
	}
	return err
}
