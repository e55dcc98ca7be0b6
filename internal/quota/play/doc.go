// Package play sends simulated hits through limits with the Go model, to show the effect of the limits. It owns
// the traffic, which specifies when hits arrive (traffic.go), the stream, a meter without earlier usage that
// package compare uses, too (stream.go), the player, which computes the result of each hit and the levels of the
// limits (play.go), and well-known limits as presets (presets.go).
//
// The package is pure: it stores and charges nothing, and it never reads a clock. Instants are integer
// microseconds since the start of a play. The same input always produces the same result.
package play
