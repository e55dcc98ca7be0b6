package postgres

import (
	"testing/fstest"
)

func scratchFS() fstest.MapFS {
	return fstest.MapFS{"00001_one.sql": {Data: []byte("-- +goose Up\nCREATE TABLE one (n int);\n-- +goose Down\nDROP TABLE one;\n")}}
}
