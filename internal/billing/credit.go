package billing

// The kinds of credits.
const (
	CreditPromotional = "promotional"
	CreditPaid        = "paid"
	CreditCarried     = "carried"
)

// The kinds of credit entries. Amounts of entries are signed: what is left of a credit is their
// sum. Granted and returned are above 0, applied, expired and withdrawn below.
const (
	EntryGranted   = "granted"
	EntryApplied   = "applied"
	EntryReturned  = "returned"
	EntryExpired   = "expired"
	EntryWithdrawn = "withdrawn"
)

// ReturnedFor is how long credits live on at least that a void invoice or a reversed payment returns, µs.
const ReturnedFor = int64(30 * 24 * 60 * 60 * 1e6)

// Credit is money that a customer has in advance.
type Credit struct {
	ID          string
	Kind        string
	AmountMinor int64
	LeftMinor   int64
	Currency    string
	Priority    int    // 0–100, the low first
	ExpiresAt   *int64 // µs
	At          int64  // when it was granted
	Seq         int64  // the age: granted earlier, lower
}

// Charge is a one-off line of the next invoice. AmountMinor may be negative.
type Charge struct {
	ID, Description, Currency string
	AmountMinor               int64
	At                        int64
}
