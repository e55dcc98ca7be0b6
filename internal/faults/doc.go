// Package faults proves that quotad neither loses nor doubles a unit when connections break
// and processes die. It has tests only, and nothing may import it.
//
// A proxy stands on both sides of quotad: between quotad and its clients, and between quotad
// and PostgreSQL. It cuts connections before a request arrives, within it, while it is under
// way, after it was done and before the answer, and within the answer. Meanwhile whole quotad
// processes and PostgreSQL are killed.
//
// Clients do operations of all kinds at random, and send each again, with its id, until it is
// answered. The tests add up what the clients were told. In the end what quotad says must be
// the same, to the unit. The same clients without ids must find doubles, or they would not see
// any. Small histories are held against a sequential model of a counter by a linearizability
// checker.
//
// The seeds are fixed, see testkit.Seed. The operations and faults of two runs are the same, their timing
// is not. So what must have happened in a run is waited for, or done again until it has.
package faults
