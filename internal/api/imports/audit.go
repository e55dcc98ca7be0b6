package imports

import (
	"context"

	"quotad/internal/api/serve"
	"quotad/internal/plans"
)

// auditImports is the target of imports in the audit trail.
const auditImports = "imports"

// auditBegin records the start of an import before its first line is done.
func (im *importing) auditBegin(ctx context.Context) error {
	if im.audited {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, im.server.DecideWithin)
	defer cancel()
	err := im.server.Store.Record(ctx, plans.Audited{Action: "begin", Target: auditImports})
	im.audited = err == nil
	return err
}

type importAudit struct {
	Lines    int64 `json:"lines"`
	Imported int64 `json:"imported"`
	Replayed int64 `json:"replayed"`
	Failed   int64 `json:"failed"`
}

// auditEnd records the result of an import that did anything.
func (im *importing) auditEnd() {
	if !im.audited {
		return
	}
	sum := &im.outcomes
	ended := plans.Audited{Action: "end", Target: auditImports, After: importAudit{sum.Lines, sum.Imported, sum.Replayed, sum.Failed}}
	if err := im.server.Store.Record(context.WithoutCancel(im.r.Context()), ended); err != nil {
		im.server.Log.Warn("the end of an import could not be audited", "request_id", serve.RequestID(im.w), "error", err)
	}
}
