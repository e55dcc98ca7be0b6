package postgres

import (
	"log/slog"
	"testing/fstest"
)

func scratchFS() fstest.MapFS {
	return fstest.MapFS{"00001_one.sql": {Data: []byte("-- +goose Up\nCREATE TABLE one (n int);\n-- +goose Down\nDROP TABLE one;\n")}}
}

var quiet = slog.New(slog.DiscardHandler)
