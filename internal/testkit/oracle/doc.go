// Package oracle is the second definition of how quotad bills: the contract's section on billing,
// as naive loops over the raw list of what happened. It serves tests, which hold the program
// against it. It shares no code with the rooms it judges, so it imports nothing of quotad:
// amounts are fractions of math/big, civil time is counted by hand on time.LoadLocation.
//
// It is meant to be read beside the contract, not to be fast. A Life is one customer. Tell it
// everything that the customer does, in order, and every instant that the test clock shows;
// Life.Invoices then says what must be on paper.
//
//   - civil.go: boundaries of periods
//   - price.go, share.go, tax.go: what a quantity costs, a part of a period, taxes
//   - world.go, life.go: what the customer was on, and what happened to it
//   - chain.go: the periods
//   - steps.go: what is due when the clock moves
//   - refund.go: what refunds take off
//   - scheduled.go: a change of plan that waits
//   - ahead.go: base in advance, also for several intervals
//   - extra.go: what comes when billing is over
//   - lines.go, levels.go, corrections.go: what an invoice says
//   - final.go, credits.go, payments.go: what becomes of it
//   - standing.go: what is said of the running period, and of an invoice before it is made
//   - caps.go: how many units a cap admits
//   - shown.go: an invoice as a text that can be compared
//   - onpaper.go: what a reader of the paper computes
package oracle
