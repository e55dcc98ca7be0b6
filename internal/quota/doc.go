// Package quota decides hits: the limits and their arithmetic, the engine that gathers
// hits into batches, and the store that holds the one statement that charges them.
//
// The arithmetic is pure and exists twice, here and as the SQL function quotad_step_v2;
// traces hold the two to each other. All time is integer microseconds since the Unix
// epoch and comes in as an argument; all quantities are integers. Nothing here knows of
// HTTP, plans or keys, and nothing but the one statement ever charges a bucket.
package quota
