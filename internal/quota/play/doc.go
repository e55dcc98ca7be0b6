// Package play plays hits through limits by the Go model, to show what limits do.
//
// It owns
//
//   - traffic: when hits come (traffic.go);
//   - the stream: a meter that nobody has used yet, which also package compare plays (stream.go);
//   - the player: what becomes of each hit, and what the limits stand at meanwhile (play.go);
//   - well-known limits to begin with (presets.go).
//
// The package is pure: nothing is stored or charged. It never reads a clock. Instants are
// integer microseconds since the start of a play. The same input gives the same result.
package play
