package web

import (
	"time"

	"quotad/internal/billing"
)

// What the API answers, as far as pages show it. The names are the API's.

type customerAnswer struct {
	Key              string     `json:"key"`
	Name             string     `json:"name"`
	Plan             string     `json:"plan"`
	PlanVersion      *int       `json:"plan_version"`
	EffectiveVersion int        `json:"effective_version"`
	Timezone         string     `json:"timezone"`
	TestClock        *string    `json:"test_clock"`
	Anonymous        bool       `json:"anonymous"`
	CreatedAt        time.Time  `json:"created_at"`
	ArchivedAt       *time.Time `json:"archived_at"`
}

type quotaAnswer struct {
	Plan        string       `json:"plan"`
	PlanVersion int          `json:"plan_version"`
	At          time.Time    `json:"at"`
	TestClock   string       `json:"test_clock"`
	Limits      []limitState `json:"limits"`
	Meters      []meterState `json:"meters"`
}

type limitState struct {
	Name      string     `json:"name"`
	Algorithm string     `json:"algorithm"`
	Mode      string     `json:"mode"`
	Limit     int64      `json:"limit"`
	Used      int64      `json:"used"`
	Remaining int64      `json:"remaining"`
	Exceeded  bool       `json:"exceeded"`
	ResetAt   *time.Time `json:"reset_at"`
	Window    *string    `json:"window"`
	Meter     string     `json:"meter"`
	Reserved  int64      `json:"reserved"`

	WindowStart *time.Time `json:"window_start"`
}

type reservationAnswer struct {
	Cost      int64     `json:"cost"`
	ExpiresAt time.Time `json:"expires_at"`
}

type meterState struct {
	Meter       string    `json:"meter"`
	Unit        string    `json:"unit"`
	PeriodStart time.Time `json:"period_start"`
	PeriodEnd   time.Time `json:"period_end"`
	Used        int64     `json:"used"`
	Included    int64     `json:"included"`
	AmountMinor *int64    `json:"amount_minor"`
	Currency    string    `json:"currency"`
}

type planAnswer struct {
	Key            string      `json:"key"`
	Version        int         `json:"version"`
	CreatedAt      time.Time   `json:"created_at"`
	Name           string      `json:"name"`
	Currency       string      `json:"currency"`
	Interval       string      `json:"interval"`
	IntervalCount  int         `json:"interval_count"`
	BasePriceMinor int64       `json:"base_price_minor"`
	BaseIn         string      `json:"base_in"`
	MinimumMinor   int64       `json:"minimum_minor"`
	Meters         []string    `json:"meters"`
	Limits         []limitSpec `json:"limits"`
	Prices         []priceSpec `json:"prices"`
}

type limitSpec struct {
	Meter     string `json:"meter"`
	Name      string `json:"name"`
	Algorithm string `json:"algorithm"`
	Limit     int64  `json:"limit"`
	Window    string `json:"window"`
	Burst     *int64 `json:"burst"`
	Align     string `json:"align"`
	Per       string `json:"per"`
	TTL       string `json:"ttl"`
	Mode      string `json:"mode"`
}

type priceSpec struct {
	Meter        string     `json:"meter"`
	Model        string     `json:"model"`
	UnitPrice    *string    `json:"unit_price"`
	PackageSize  *int64     `json:"package_size"`
	PackagePrice *string    `json:"package_price"`
	Tiers        []tierSpec `json:"tiers"`
	Included     int64      `json:"included"`
	MinimumMinor *int64     `json:"minimum_minor"`
	MaximumMinor *int64     `json:"maximum_minor"`
}

type tierSpec struct {
	UpTo      *int64  `json:"up_to"`
	UnitPrice string  `json:"unit_price"`
	FlatPrice *string `json:"flat_price"`
}

type meterAnswer struct {
	Key  string `json:"key"`
	Name string `json:"name"`
	Unit string `json:"unit"`
}

// meterNames are meters by key.
type meterNames map[string]meterAnswer

// of is a meter. One that is not there any more has its key only.
func (m meterNames) of(key string) meterAnswer {
	found := m[key]
	found.Key = key
	return found
}

type listAnswer[T any] struct {
	Items      []T     `json:"items"`
	NextCursor *string `json:"next_cursor"`
}

type usageAnswer struct {
	Points []usagePoint `json:"points"`
}

type usagePoint struct {
	Start    time.Time `json:"start"`
	Admitted int64     `json:"admitted"`
	Denied   int64     `json:"denied"`
}

type invoiceAnswer struct {
	ID             *string       `json:"id"`
	Number         *string       `json:"number"`
	Kind           string        `json:"kind"`
	Customer       string        `json:"customer"`
	Status         string        `json:"status"`
	Currency       string        `json:"currency"`
	PeriodStart    time.Time     `json:"period_start"`
	PeriodEnd      time.Time     `json:"period_end"`
	Lines          []invoiceLine `json:"lines"`
	SubtotalMinor  int64         `json:"subtotal_minor"`
	Taxes          []invoiceTax  `json:"taxes"`
	TaxMinor       int64         `json:"tax_minor"`
	TotalMinor     int64         `json:"total_minor"`
	CreditsMinor   int64         `json:"credits_minor"`
	AmountDueMinor int64         `json:"amount_due_minor"`
	CreditedMinor  int64         `json:"credited_minor"`
	PaidMinor      *int64        `json:"paid_minor"`
	OpenMinor      int64         `json:"open_minor"`
	DueAt          *time.Time    `json:"due_at"`
	FinalizedAt    *time.Time    `json:"finalized_at"`
	PaidAt         *time.Time    `json:"paid_at"`
	Held           *string       `json:"held"`
	Of             *string       `json:"of"`
	Reason         *string       `json:"reason"`

	Projection *projectionAnswer `json:"projection"`
}

func (i *invoiceAnswer) isNote() bool { return i.Kind == "credit_note" }

// paidOn says that an invoice was paid, and the day if that was kept.
func (i *invoiceAnswer) paidOn(zone *time.Location) string {
	if i.PaidAt == nil {
		return "Paid"
	}
	return "Paid on " + i.PaidAt.In(zone).Format("2 January 2006")
}

// settled is what became of an invoice's total: what credits, the payment and credit notes took off.
func (i *invoiceAnswer) settled(zone *time.Location) (all []fact) {
	add := func(term string, minor int64) {
		if minor != 0 {
			all = append(all, fact{Term: term, Text: money(minor, i.Currency)})
		}
	}
	add("Credits", -i.CreditsMinor)
	if i.PaidMinor != nil {
		add(i.paidOn(zone), -*i.PaidMinor)
	}
	add("Credit notes", -i.CreditedMinor)
	if i.PaidMinor != nil {
		add("Given back", max(0, *i.PaidMinor+i.CreditedMinor-i.AmountDueMinor))
	}
	return all
}

// rest is what is left of an invoice's total after that, and its name.
func (i *invoiceAnswer) rest() fact {
	switch {
	case i.isNote():
		return fact{Term: "Given back", Text: money(-i.TotalMinor, i.Currency)}
	case i.Status == "draft":
		return fact{Term: "So far", Text: money(i.AmountDueMinor, i.Currency)}
	case i.OpenMinor > 0:
		return fact{Term: "Due", Text: money(i.OpenMinor, i.Currency)}
	}
	return fact{Term: "Open", Text: money(0, i.Currency)}
}

// projectionAnswer is what an upcoming invoice is projected to come to.
type projectionAnswer struct {
	Lines          []invoiceLine `json:"lines"`
	Taxes          []invoiceTax  `json:"taxes"`
	CreditsMinor   int64         `json:"credits_minor"`
	AmountDueMinor int64         `json:"amount_due_minor"`
}

type invoiceLine struct {
	N           int       `json:"n"`
	Kind        string    `json:"kind"`
	Meter       *string   `json:"meter"`
	Description string    `json:"description"`
	From        time.Time `json:"from"`
	To          time.Time `json:"to"`
	Quantity    int64     `json:"quantity"`
	Included    int64     `json:"included"`
	AmountMinor int64     `json:"amount_minor"`

	Tiers        []billing.TierLine `json:"tiers"`
	UnitPrice    *string            `json:"unit_price"`
	PackageSize  *int64             `json:"package_size"`
	PackagePrice *string            `json:"package_price"`
	Applied      *string            `json:"applied"`
}

type invoiceTax struct {
	Name     string `json:"name"`
	Percent  string `json:"percent"`
	TaxMinor int64  `json:"tax_minor"`
}

// overviewAnswer is the API's overview.
type overviewAnswer struct {
	At       time.Time `json:"at"`
	Concerns []struct {
		Name string `json:"name"`
		Text string `json:"text"`
	} `json:"concerns"`
	Failed    []string `json:"failed"`
	Decisions *struct {
		PerSecond string        `json:"per_second"`
		Seconds   int64         `json:"seconds"`
		Hour      decidedAnswer `json:"hour"`
		Day       decidedAnswer `json:"day"`
	} `json:"decisions"`
	Nodes []struct {
		Name      string    `json:"name"`
		Version   string    `json:"version"`
		State     string    `json:"state"`
		Reason    string    `json:"reason"`
		StartedAt time.Time `json:"started_at"`
		SeenAt    time.Time `json:"seen_at"`
		PerSecond string    `json:"per_second"`
	} `json:"nodes"`
	Fullest *struct {
		AsOf     time.Time `json:"as_of"`
		Counters int64     `json:"counters"`
		Judged   int64     `json:"judged"`
		Complete bool      `json:"complete"`
		Items    []struct {
			Customer string `json:"customer"`
			Name     string `json:"name"`
			Meter    string `json:"meter"`
			Limit    string `json:"limit"`
			Mode     string `json:"mode"`
			Used     int64  `json:"used"`
			Of       int64  `json:"of"`
			Percent  int64  `json:"percent"`
		} `json:"items"`
	} `json:"fullest"`
	Database *struct {
		Version             string     `json:"version"`
		SizeBytes           int64      `json:"size_bytes"`
		Connections         int64      `json:"connections"`
		MaxConnections      int64      `json:"max_connections"`
		ReadOnly            bool       `json:"read_only"`
		Replicas            int64      `json:"replicas"`
		ReplicaLagBytes     *int64     `json:"replica_lag_bytes"`
		OldestTransactionAt *time.Time `json:"oldest_transaction_at"`
	} `json:"database"`
	Books struct {
		CheckedAt        *time.Time `json:"checked_at"`
		Disagreeing      []string   `json:"disagreeing"`
		BlockedCustomers int64      `json:"blocked_customers"`
	} `json:"books"`
}

type decidedAnswer struct {
	Admitted int64 `json:"admitted"`
	Refused  int64 `json:"refused"`
}
