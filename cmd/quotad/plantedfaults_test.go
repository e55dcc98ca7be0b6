package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// plantAlways adds a field without a label, and a picture without a text.
const plantAlways = `(() => {
  const main = document.querySelector("main");
  main.append(document.createElement("input"), document.createElement("img"));
  return 0;
})()`

// plantInView adds a faint sentence, and buttons that are too small and too close to each other.
const plantInView = `(() => {
  const main = document.querySelector("main"), faint = main.appendChild(document.createElement("p"));
  faint.textContent = "A faint sentence";
  faint.style.color = "rgb(128 128 128 / 0.4)";
  const pair = main.appendChild(document.createElement("div"));
  for (const name of ["one", "two"]) {
    const small = pair.appendChild(document.createElement("button"));
    small.ariaLabel = name;
    small.style.cssText = "all: unset; display: inline-block; width: 9px; height: 9px; background: currentcolor";
  }
  return 0;
})()`

// What all tests of pages lean on: axe finds a fault of each kind in each view in which it looks.
func TestPlantedPageFaultsAreFound(t *testing.T) {
	t.Parallel()
	w := openWindow(t, start(t, ""))
	row := &pageRow{path: "/playground", says: "What gets through"}
	w.examine(row, axeSource(t))
	for _, v := range append(otherViews(), usual) {
		w.view(v)
		if faults := w.faults(row); len(faults) > 0 {
			t.Errorf("%s: before anything is planted: %q", v, faults)
		}
	}
	eval[int](w, plantInView)
	eval[int](w, plantAlways)
	for _, v := range append(otherViews(), usual) {
		if !v.axeLooks() {
			continue
		}
		w.view(v)
		found := strings.Join(w.faults(row), "\n")
		want := []string{"color-contrast", "target-size"}
		if v == usual {
			want = append(want, "label", "image-alt")
		}
		for _, rule := range want {
			if !strings.Contains(found, "axe: "+rule+": ") {
				t.Errorf("%s: axe does not find a fault of %s:\n%s", v, rule, found)
			}
		}
	}
}

// A machine that has no browser is told how to get one, and of several the quickest is used.
func TestBrowserIsFoundOrExplained(t *testing.T) {
	t.Parallel()
	first, second := t.TempDir(), t.TempDir()
	searched := first + string(filepath.ListSeparator) + second
	if at, err := browserProgram(searched); err == nil || !strings.Contains(err.Error(), "scripts/deps.sh chromium") {
		t.Errorf("without a browser: %q, %v", at, err)
	}
	for i, name := range slices.Backward(browserNames) {
		want := filepath.Join([]string{first, second}[i%2], name)
		if err := os.WriteFile(want, nil, 0o755); err != nil {
			t.Fatal(err)
		}
		if at, err := browserProgram(searched); err != nil || at != want {
			t.Errorf("%s is there, and %q is used: %v", want, at, err)
		}
	}
}
