package imports

import (
	"errors"
	"io"
	"strings"
	"testing"
)

// A body that is too large ends, whatever its lines are.
func TestLargeBodies(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]io.Reader{
		"many lines":  strings.NewReader(strings.Repeat(strings.Repeat(" ", 999)+"\n", 1000)),
		"a long line": readerFunc(func(p []byte) (int, error) { return len(p), nil }),
	} {
		l := newLineReader(body)
		l.size = MaxSize - 500_500
		var items []item
		var err error
		for err == nil {
			items, err = l.group(items)
		}
		if !errors.Is(err, errImportLarge) || len(items) != 0 && name == "many lines" || l.size > MaxSize+2*MaxLine {
			t.Errorf("%s: %v behind %d bytes: %v", name, err, l.size, items)
		}
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
