package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
)

// plantAlways adds a field without a label, a picture without a text, and two elements with the same id.
const plantAlways = `(() => {
  const main = document.querySelector("main");
  main.append(document.createElement("input"), document.createElement("img"));
  for (const e of [document.createElement("p"), document.createElement("p")]) {
    e.id = "planted";
    main.append(e);
  }
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

// TestPlantedPageFaultsAreFound holds what all tests of pages rely on: a fault of each kind is found in each view
// in which the tests look for that kind.
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
		want := []string{"axe: color-contrast: ", "axe: target-size: ", "an id that another element has, too: "}
		if v == usual {
			want = append(want, "axe: label: ", "axe: image-alt: ")
		}
		for _, fault := range want {
			if !strings.Contains(found, fault) {
				t.Errorf("%s: %q is not found:\n%s", v, fault, found)
			}
		}
	}
}

// noted is a test that keeps why it was failed, and ends the goroutine that failed it.
type noted struct {
	testing.TB
	why string
}

func (n *noted) Helper() {}

func (n *noted) Fatalf(format string, args ...any) {
	n.why = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// TestAScriptThatThrowsEndsTheWait holds that a test does not wait for a page whose script has ended, and names
// what the script threw.
func TestAScriptThatThrowsEndsTheWait(t *testing.T) {
	t.Parallel()
	w := openWindow(t, start(t, ""))
	for name, wait := range map[string]func(what, expression string){"until": w.until, "settles": w.settles} {
		w.look(1280, "light", "/playground")
		wait("what is there", `document.readyState === "complete"`)
		eval[int](w, `setTimeout(() => { throw new Error("planted") });0`)
		failed := &noted{TB: t}
		w.t = failed
		var waiting sync.WaitGroup
		waiting.Go(func() { wait("what never comes", "false") })
		waiting.Wait()
		w.t = t
		if !strings.Contains(failed.why, "what never comes") || !strings.Contains(failed.why, "planted") {
			t.Errorf("%s: %q", name, failed.why)
		}
		wait("what was there before", `document.readyState === "complete"`)
		w.look(1280, "light", "/playground")
		wait("what is there again", `document.readyState === "complete"`)
	}
}

// TestBrowserIsFoundOrExplained uses the quickest of several browsers. Without a browser, the error explains how to get one.
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
			t.Errorf("the browser is %q, not %s: %v", at, want, err)
		}
	}
}
