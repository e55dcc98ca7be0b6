package admin

import (
	"time"

	"quotad/internal/web/parts"
)

// A table is a list as admins read it. A sheet shows it as a part of a section.
type table struct {
	Caption string
	Head    []column
	Rows    [][]cell
	Empty   string // instead of a table without rows
	Next    string // where the next page is; empty: there is none
}

type column struct {
	Text    string
	Numeric bool
}

// A cell is text, perhaps with a link, a second line, a mark or a form.
type cell struct {
	Text, URL, Sub string
	Chip           *parts.Chip
	Numeric, Mono  bool
	Form           *form
	Fold           []string // documents, folded
}

func heads(texts ...string) []column {
	all := make([]column, len(texts))
	for i, text := range texts {
		all[i].Text = text
	}
	return all
}

func text(s string) cell { return cell{Text: s} }

func linked(s, to string) cell { return cell{Text: s, URL: to} }

func amount(s string) cell { return cell{Text: s, Numeric: true} }

func mono(s string) cell { return cell{Text: s, Mono: true} }

func marked(class, s string) cell { return cell{Chip: &parts.Chip{Class: class, Text: s}} }

// instant is a time by the clock of the page.
func (v *visit) instant(at *time.Time) cell {
	if at == nil {
		return text("–")
	}
	return text(at.In(v.Zone).Format("2 Jan 2006, 15:04"))
}
