// Package archive takes old months of usage and adjustments out of their tables, once nothing of them
// is to be billed or corrected any more. It decides whether that is so, and in which order it is done.
// What reaches the hot tables it asks of the engine. It must never take out what an invoice may need.
package archive
