package main

import (
	"os"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// docs/guide/limits-of-the-service.md names settings that there are, with their defaults.
func TestSettingsOfTheLimitsPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/guide/limits-of-the-service.md")
	if err != nil {
		t.Fatal(err)
	}
	defaults := make(map[string]string)
	all := reflect.TypeFor[settings]()
	for i := range all.NumField() {
		f := all.Field(i)
		name := f.Tag.Get("name")
		if name == "" {
			name = strings.ToLower(regexp.MustCompile(`([a-z])([A-Z])`).ReplaceAllString(f.Name, "$1-$2"))
		}
		defaults["--"+name] = f.Tag.Get("default")
	}
	rows := 0
	for _, row := range regexp.MustCompile("(?m)^\\|.*`--.*$").FindAllString(string(page), -1) {
		bounds, _, _ := strings.Cut(strings.SplitN(row, " | ", 2)[1], " | `quotad")
		for _, flag := range regexp.MustCompile("--[a-z-]+").FindAllString(row, -1) {
			usual, known := defaults[flag]
			number, err := strconv.Atoi(usual)
			if !known {
				t.Errorf("there is no setting %s: %s", flag, row)
			} else if err == nil && !regexp.MustCompile(`\b`+grouped(number)+`\b`).MatchString(bounds) {
				t.Errorf("%s is %d by default, and not what the page says: %s", flag, number, row)
			}
		}
		rows++
	}
	if rows < 6 {
		t.Errorf("only %d rows have a setting", rows)
	}
}

// grouped writes a number as pages do: 10,000.
func grouped(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
