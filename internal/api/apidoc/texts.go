package apidoc

import (
	_ "embed" // the descriptions of the operations
	"strings"
)

//go:embed operations.md
var operationsFile string

// Texts are the descriptions of the operations in Markdown, by the operation's id, and of
// what operations share.
var Texts = sections(operationsFile)

// sections takes a file apart at its headings of the second level.
func sections(markdown string) map[string]string {
	list := map[string]string{}
	for _, section := range strings.Split(markdown, "\n## ")[1:] {
		id, text, _ := strings.Cut(section, "\n")
		list[id] = strings.TrimSpace(text)
	}
	return list
}

// A block is a paragraph, which has one text, or a list. Descriptions use no more of
// Markdown than these and inline code.
type block struct {
	List  bool
	Texts [][]span
}

type span struct {
	Text string
	Code bool
}

// blocks reads a description, for the template of /docs: so it needs no HTML from strings.
func blocks(markdown string) (list []block) {
	text, isItem := "", false
	end := func() {
		if text == "" {
			return
		}
		if !isItem || len(list) == 0 || !list[len(list)-1].List {
			list = append(list, block{List: isItem})
		}
		last := &list[len(list)-1]
		last.Texts = append(last.Texts, spans(text))
		text, isItem = "", false
	}
	for line := range strings.SplitSeq(markdown, "\n") {
		item, begins := strings.CutPrefix(line, "- ")
		switch {
		case line == "":
			end()
		case begins:
			end()
			text, isItem = item, true
		case text == "":
			text = line
		default:
			text += " " + line
		}
	}
	end()
	return list
}

// spans takes a text apart at its inline code.
func spans(text string) (list []span) {
	for i, part := range strings.Split(text, "`") {
		if part != "" {
			list = append(list, span{Text: part, Code: i%2 == 1})
		}
	}
	return list
}
