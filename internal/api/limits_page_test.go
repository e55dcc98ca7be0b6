package api

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"quotad/internal/api/drafts"
	"quotad/internal/api/hits"
	"quotad/internal/api/imports"
	"quotad/internal/api/problem"
	"quotad/internal/api/request"
	"quotad/internal/api/serve"
	"quotad/internal/api/usage"
	"quotad/internal/plans"
	"quotad/internal/quota/model"
	"quotad/internal/quota/play"
	"quotad/internal/quota/queue"
	"quotad/internal/throttle"
)

// thousands writes a number as pages do: 10,000.
func thousands(n int64) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

func kib(n int64) string { return fmt.Sprintf("%d KiB", n>>10) }

func mib(n int64) string { return fmt.Sprintf("%d MiB", n>>20) }

// docs/guide/limits-of-the-service.md says the bounds as they are here.
func TestLimitsOfTheServiceAreAsWritten(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/guide/limits-of-the-service.md")
	check(t, err)
	seconds := func(d time.Duration) string { return fmt.Sprintf("%.0f s", d.Seconds()) }
	for row, want := range map[string]string{
		"head of a request":                  kib(maxHeaderBytes),
		"body |":                             kib(request.MaxBody),
		"body of a batch":                    mib(request.MaxBatchBody),
		"body of an import, and each of its": fmt.Sprintf("%d GiB, %s", imports.MaxSize>>30, kib(imports.MaxLine)),
		"hits of a batch":                    thousands(hits.MaxHits),
		"time for the head":                  seconds(headerTimeout),
		"time for the body":                  seconds(readTimeout),
		"time that a request waits":          "`--request-timeout`, " + seconds(serve.DefaultDeadline),
		"time from the request":              seconds(serve.WriteTimeout),
		"time that a connection is idle":     seconds(idleTimeout),
		"attributes of a hit": fmt.Sprintf("%d, names of %d bytes, values of %d bytes",
			model.MaxAttributes, model.MaxAttributeName, model.MaxAttributeValue),
		"an id":                             fmt.Sprintf("%d bytes", model.MaxID),
		"a cost, a limit":                   thousands(model.MaxNumber),
		"items of a page":                   thousands(plans.MaxPage),
		"points of usage":                   thousands(usage.MaxPoints) + ", " + thousands(usage.MaxHours),
		"life of a reservation":             fmt.Sprintf("%d h", model.MaxTTL/int64(time.Hour/time.Microsecond)),
		"errors that an answer lists":       fmt.Sprint(problem.MaxErrors),
		"rows of one transaction":           thousands(queue.MaxBatch) + "; " + fmt.Sprint(queue.SharedRows),
		"batches that are decided":          fmt.Sprint(hits.MaxBatches) + "; " + fmt.Sprint(hits.MaxOwnBatches),
		"answers of batches":                fmt.Sprint(hits.MaxUnread),
		"imports that are open":             fmt.Sprint(imports.MaxOpen) + "; " + fmt.Sprint(imports.MaxOwn),
		"groups of imports' lines":          fmt.Sprint(imports.MaxGroups),
		"plays and comparisons":             fmt.Sprint(drafts.MaxHeavy),
		"hits of a play":                    thousands(play.MaxHits),
		"customers of a comparison":         thousands(drafts.CompareMost) + ", chosen from " + thousands(drafts.CompareFrom) + ",",
		"bytes of bodies":                   mib(serve.UsualBodies) + ", at least a 64th and at most an eighth of the node's memory;",
		"new values of attributes":          thousands(queue.MostNewValues),
		"addresses that are remembered":     thousands(throttle.MaxAddresses),
		"requests at once on a connection":  fmt.Sprint(maxStreams),
		"frame of HTTP/2":                   kib(maxFrame),
		"bytes of HTTP/2":                   kib(streamBuffer),
		"time in which a connection of HTT": seconds(serve.WriteTimeout),
	} {
		_, rest, found := strings.Cut(string(page), "\n| "+row)
		line, _, _ := strings.Cut("| "+row+rest, "\n")
		columns := strings.Split(line+" ", " | ")
		if !found || len(columns) < 3 || !strings.HasPrefix(columns[1]+" ", want+" ") {
			t.Errorf("the page does not say %q, as the code does: %s", want, line)
		}
	}
	if !strings.Contains(string(page), fmt.Sprintf("It may take %s for each %d lines.", seconds(imports.DefaultWait), imports.MaxGroup)) {
		t.Error("the time of an import is another")
	}
}
