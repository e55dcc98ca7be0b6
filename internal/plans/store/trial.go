package store

import (
	"context"
	"errors"
)

// Trial returns a store whose writes are tried: where they would commit they call look, which reads in
// their transaction, and all is rolled back. Nobody hears of them. A write that has nothing to write
// calls look, too. Errors are those of the write and of look.
func (s *Store) Trial(look func(ctx context.Context, w *Writing) error) *Store {
	options := s.options
	options.Committed = nil
	return &Store{pool: s.pool, writers: s.writers, options: options, look: look}
}

// try runs a write, and look on what it wrote. The caller rolls back.
func (s *Store) try(ctx context.Context, w *Writing, do func(ctx context.Context, w *Writing) error) error {
	outer := w.Tx
	inner, err := outer.Begin(ctx)
	if err != nil {
		return err
	}
	w.Tx = inner
	if err = do(ctx, w); errors.Is(err, errUnchanged) { // it may have begun to write
		err = inner.Rollback(ctx)
		w.Tx = outer
	}
	if err == nil {
		err = s.look(ctx, w)
	}
	return err
}
