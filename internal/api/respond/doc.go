// Package respond writes answers: the head and the body of each. It appends decisions, the
// limits behind them and the quota headers to pooled buffers. These answers are the whole
// load. So nothing here uses reflection, and the types in bodies.go are for schemas and tests
// only.
//
// It decides nothing and reads no request. It never answers with an error: that is for package
// problem.
package respond
