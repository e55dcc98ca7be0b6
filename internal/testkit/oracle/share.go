package oracle

import "math/big"

func whole(n int64) *big.Rat { return new(big.Rat).SetInt64(n) }

func decimal(text string) *big.Rat {
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		panic("not a number: " + text)
	}
	return r
}

// down is the next whole number below, or the number itself.
func down(r *big.Rat) int64 {
	return new(big.Int).Div(r.Num(), r.Denom()).Int64()
}

// round is the nearest whole number, half away from zero.
func round(r *big.Rat) int64 {
	if r.Sign() < 0 {
		return -round(new(big.Rat).Neg(r))
	}
	return down(new(big.Rat).Add(r, big.NewRat(1, 2)))
}

// A Share is the part [A,B) of the whole period [S,E).
type Share struct{ S, E, A, B int64 }

// upTo is amount·(t−S)/(E−S).
func (s Share) upTo(amount, t int64) *big.Rat {
	r := new(big.Rat).Mul(whole(amount), whole(t-s.S))
	return r.Quo(r, whole(s.E-s.S))
}

// Money is the share of an amount: P(b)−P(a), each rounded.
func (s Share) Money(amount int64) int64 {
	return round(s.upTo(amount, s.B)) - round(s.upTo(amount, s.A))
}

// Units is the share of included units: as of an amount, but rounded down.
func (s Share) Units(n int64) int64 {
	return down(s.upTo(n, s.B)) - down(s.upTo(n, s.A))
}

// part is the share [a,b) of the same whole period.
func (s Share) part(a, b int64) Share { return Share{s.S, s.E, a, b} }
