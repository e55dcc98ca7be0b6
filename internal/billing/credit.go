package billing

// Kinds of credits.
const (
	CreditPromotional = "promotional"
	CreditPaid        = "paid"
	CreditCarried     = "carried"
)

// Kinds of credit entries. The amounts of entries are signed, and their sum is the credit's remaining amount.
// Granted and returned amounts are above 0; applied, expired and withdrawn amounts are below 0.
const (
	EntryGranted   = "granted"
	EntryApplied   = "applied"
	EntryReturned  = "returned"
	EntryExpired   = "expired"
	EntryWithdrawn = "withdrawn"
)

// ReturnedFor is the minimum time, in µs, until a credit expires after a void invoice or a reversed payment
// returned it.
const ReturnedFor = int64(30 * 24 * 60 * 60 * 1e6)

// Credit is money that a customer has in advance.
type Credit struct {
	ID          string
	Kind        string
	AmountMinor int64
	LeftMinor   int64
	Currency    string
	Priority    int    // 0–100; lower priorities are used first
	ExpiresAt   *int64 // µs
	At          int64  // the instant of the grant
	Seq         int64  // the order of the grants: an older credit has a lower Seq
}

// Charge is a one-off line of the next invoice. AmountMinor may be negative.
type Charge struct {
	ID, Description, Currency string
	AmountMinor               int64
	At                        int64
}
