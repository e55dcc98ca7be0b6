// Package respond writes answers: the head and the body of each, and, by appending to
// pooled buffers, what decisions, the limits behind them and the headers of quotas say.
// These answers are the whole load, so nothing here is done by reflection, and the types
// in bodies.go are for schemas and tests only.
//
// It decides nothing and reads no request. It never answers with an error: that is for
// package problem.
package respond
