// Package testkit has what tests of all rooms share: the seed of a random test, and the deadline
// that guards a test against hanging.
package testkit
