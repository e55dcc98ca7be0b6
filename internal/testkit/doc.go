// Package testkit has what tests of all rooms share: the seed of a random test, the deadline that guards a
// test against hanging, and what holds two types of one document together.
package testkit
