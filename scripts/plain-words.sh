#!/usr/bin/env bash
# plain-words.sh [FILE...]: fails where more than one sentence in twenty has more
# than 30 words, where a paragraph or item of the API's descriptions has more than 40,
# and where README.md has more than 1,500 words. Each Markdown file is
# judged by itself, all package comments of the Go files together, and so are the
# descriptions of the API. Without a FILE it looks at those of the list below.
#
# A sentence ends at . ! or ? before white space, and with its paragraph, list
# item or table cell: cells are judged one by one. What has fewer than four words
# is a label and is not counted. Code blocks, headings and HTML comments are left
# out. Inline code is one word; of a link only its text counts.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh
most=30 one_in=20 wall=40

if [ $# -gt 0 ]; then
  files=("$@")
else
  files=(README.md ARCHITECTURE.md docs/guide/*.md 'package comments' 'API descriptions')
fi

# package_comments: the comments right above the package clauses, in Markdown.
package_comments() {
  find . -name '*.go' -not -path './.*' | sort | while read -r file; do
    awk -v file="$file" '
      /^\/\/go:|^\/\/ *nolint/ { next }
      /^\/\//     { line = $0; sub(/^\/\/ ?/, "", line); text = text line "\n"; next }
      /^package / { if (text != "") printf "<!-- in %s -->\n%s\n", file, text; exit }
                  { text = "" }
    ' "$file"
  done
}

# api_descriptions: those of docs/openapi.json, each once, and the texts of the
# problem types, in Markdown.
api_descriptions() {
  {
    sed -nE 's/^ *"description": "(.*)",?$/\1/p' docs/openapi.json
    grep -oE '"([^"\\]|\\.)*"' internal/api/problem/kinds.go | sed -E 's/^"(.*)"$/\1/'
  } | sort -u | awk '{ gsub(/\\n/, "\n"); gsub(/\\"/, "\""); print $0 "\n" }'
}

# judge NAME FILE [WORDS]: the sentences of FILE (-: standard input) that are too long,
# and the paragraphs and items of more than WORDS.
judge() {
  awk -v name="$1" -v wall="${3:-0}" -v most="$most" -v one_in="$one_in" '
    function sentence(s,   words, w, n, i) {
      n = split(s, w, /[ \t]+/)
      for (i = 1; i <= n; i++) if (w[i] ~ /[A-Za-z0-9]/) words++
      if (words < 4) return
      all++
      if (words > most) long[++too_long] = sprintf("  %s, %d words: %s", from, words, s)
    }
    function block(   s, w) {
      s = text; text = ""
      gsub(/`[^`]*`/, "code", s)
      while (match(s, /\]\([^()]*\)/)) s = substr(s, 1, RSTART - 1) substr(s, RSTART + RLENGTH)
      gsub(/[*[]/, "", s)
      gsub(/[ \t]+/, " ", s); sub(/^ /, "", s)
      if (wall && split(s, w, / /) > wall) walls[++too_much] = sprintf("  %s: %s", from, s)
      while (match(s, /[.!?]["\047)]*[ \t]+/)) {
        sentence(substr(s, 1, RSTART))
        s = substr(s, RSTART + RLENGTH)
      }
      if (s != "") sentence(s)
    }
    function add(s) { if (text == "") from = file ? file : "line " FNR; text = text " " s }
    /^<!-- in .*-->$/        { block(); file = $3; next }
    /^[ \t]*```/             { block(); code = !code; next }
    code                     { next }
    /^<!--.*-->[ \t]*$/      { block(); next }
    /^[ \t]*$/               { block(); next }
    /^#/                     { block(); next }
    /^(\t|    )/             { block(); next }
    /^\|/                    { block(); gsub(/\\\|/, "/"); n = split($0, cell, "|")
                               for (c = 2; c < n; c++) if (cell[c] !~ /^[ :-]*$/) { add(cell[c]); block() }
                               next }
    /^[ \t]*([-*]|[0-9]+\.) / { block(); sub(/^[ \t]*([-*]|[0-9]+\.) /, "") }
                             { add($0) }
    END {
      block()
      for (i = 1; i <= too_much; i++) {
        if (i == 1) printf "%s: a paragraph or item has more than %d words, make a list of it:\n", name, wall
        print walls[i]
      }
      if (too_long * one_in <= all) exit too_much > 0
      printf "%s: %d of %d sentences have more than %d words, and %d may:\n", name, too_long, all, most, int(all / one_in)
      for (i = 1; i <= too_long; i++) print long[i]
      exit 1
    }
  ' "$2" >&2
}

failed=0 judged=0
[ "$(wc -w <README.md)" -le 1500 ] || die 'README.md has more than 1,500 words: what is more is a page of docs/guide'
for file in "${files[@]}"; do
  [ -n "$file" ] || continue
  judged=$((judged + 1))
  case $file in
    'package comments') package_comments | judge "$file" - || failed=1 ;;
    'API descriptions') api_descriptions | judge "$file" - "$wall" || failed=1 ;;
    *) judge "$file" "$file" || failed=1 ;;
  esac
done
[ "$failed" = 0 ] || die 'write shorter sentences: one fact each'
say "plain words: $judged texts, at most one sentence in $one_in is longer than $most words"
