package model

// Hit is one hit of many (see DecideAll).
type Hit struct {
	Target *Target
	Cost   int64 // 0 … MaxNumber; 0 looks only
	Look   bool  // judge and charge nothing
	ID     ID    // charged once, whoever sends it how often; zero: it has none
}

func (h *Hit) Looks() bool { return h.Look || h.Cost == 0 }
