package api

import (
	"net/http"
	"strings"

	"quotad/internal/plans"
)

// errIfMatch: the header is not a list of entity tags.
var errIfMatch = invalid("If-Match", `must be * or a list of entity tags in quotes, as ETag gave them`)

// quoteETag is an entity tag as the header ETag has it.
func quoteETag(tag string) string { return `"` + tag + `"` }

// precondition reads If-Match (RFC 9110, 13.1.1). Of a list, present is taken when it is
// among them, so that the store compares one tag. Weak tags never match.
func precondition(h http.Header, present func() (string, error)) (plans.Precondition, error) {
	lines := h.Values("If-Match")
	if len(lines) == 0 {
		return plans.Precondition{}, nil
	}
	tags, all, err := parseIfMatch(strings.Join(lines, ","))
	if err != nil || all || len(tags) == 1 {
		p := plans.Precondition{Given: true, Any: all}
		if len(tags) == 1 {
			p.ETag = tags[0]
		}
		return p, err
	}
	p := plans.Precondition{Given: true}
	now, err := present()
	if err != nil {
		return p, err
	}
	for _, tag := range tags {
		if tag == now {
			p.ETag = tag
		}
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
