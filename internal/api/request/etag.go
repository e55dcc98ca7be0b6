package request

import (
	"net/http"
	"strings"

	"quotad/internal/api/problem"
	"quotad/internal/plans"
)

var (
	// errIfMatch reports an If-Match header that is not a list of entity tags.
	errIfMatch = problem.Invalid("If-Match", `must be * or a list of entity tags in quotes, as ETag gave them`)
	// errIfNoneMatch reports an If-None-Match header with entity tags. If the header were ignored, quotad would
	// do a write that the client wanted to prevent.
	errIfNoneMatch = problem.Invalid("If-None-Match", `must be *, which writes only what is not there yet; use If-Match with the ETag to replace something`)
)

// QuoteETag returns an entity tag in the form of the ETag header.
func QuoteETag(tag string) string { return `"` + tag + `"` }

// Precondition reads If-Match and If-None-Match (RFC 9110, 13.1). Weak tags never match.
func Precondition(h http.Header) (p plans.Precondition, err error) {
	if lines := h.Values("If-Match"); len(lines) > 0 {
		p.Given = true
		if p.ETags, p.Any, err = parseIfMatch(strings.Join(lines, ",")); err != nil {
			return p, err
		}
	}
	if lines := h.Values("If-None-Match"); len(lines) > 0 {
		if strings.Trim(strings.Join(lines, ","), " \t") != "*" {
			return p, errIfNoneMatch
		}
		p.None = true
	}
	return p, nil
}

// parseIfMatch reads * or a list of entity tags and returns the strong ones, unquoted.
func parseIfMatch(text string) (tags []string, all bool, err error) {
	text = strings.Trim(text, " \t")
	if text == "*" {
		return nil, true, nil
	}
	seen := false
	for text != "" {
		if text[0] == ',' || text[0] == ' ' || text[0] == '\t' {
			text = text[1:]
			continue
		}
		opaque, weak := strings.CutPrefix(text, "W/")
		if len(opaque) < 2 || opaque[0] != '"' {
			return nil, false, errIfMatch
		}
		end := strings.IndexByte(opaque[1:], '"')
		if end < 0 {
			return nil, false, errIfMatch
		}
		tag, rest := opaque[1:1+end], strings.TrimLeft(opaque[2+end:], " \t")
		if rest != "" && rest[0] != ',' {
			return nil, false, errIfMatch
		}
		if strings.ContainsFunc(tag, func(c rune) bool { return c <= ' ' || c == 0x7f }) {
			return nil, false, errIfMatch
		}
		if !weak {
			tags = append(tags, tag)
		}
		seen, text = true, rest
	}
	if !seen {
		return nil, false, errIfMatch
	}
	return tags, false, nil
}
