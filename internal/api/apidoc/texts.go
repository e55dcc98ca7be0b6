package apidoc

import (
	_ "embed" // the descriptions of the operations
	"strings"
)

//go:embed operations.md
var operationsFile string

// Texts contains the Markdown descriptions of the operations by operation id, and the texts that operations
// share.
var Texts = sections(operationsFile)

// sections splits a file at its second-level headings.
func sections(markdown string) map[string]string {
	list := map[string]string{}
	for _, section := range strings.Split(markdown, "\n## ")[1:] {
		id, text, _ := strings.Cut(section, "\n")
		list[id] = strings.TrimSpace(text)
	}
	return list
}

// block is a paragraph, which has one text, or a list. Descriptions use no other Markdown except inline code.
type block struct {
	List  bool
	Texts [][]span
}

type span struct {
	Text string
	Code bool
}

// blocks parses a description for the template of /docs, so that no HTML is built from strings.
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

// spans splits a text at its inline code.
func spans(text string) (list []span) {
	for i, part := range strings.Split(text, "`") {
		if part != "" {
			list = append(list, span{Text: part, Code: i%2 == 1})
		}
	}
	return list
}
