// Package migrations holds the schema of quotad's database as goose files, one for each
// area, in the order of their numbers. A file that was released is never edited: a
// later one changes what it made.
package migrations

import "embed"

// FS holds every migration at its root.
//
//go:embed *.sql
var FS embed.FS
