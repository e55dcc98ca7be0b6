// Package migrations owns the schema of quotad's database: goose files, one for each area, in
// the order of their numbers. internal/postgres applies them.
//
// A file that was released must never be edited: a later one changes what it made.
package migrations

import "embed"

// FS holds every migration at its root.
//
//go:embed *.sql
var FS embed.FS
