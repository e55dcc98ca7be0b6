package store_test

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"

	"quotad/internal/plans"
	"quotad/internal/plans/store"
	"quotad/internal/testkit"
	"quotad/internal/testkit/planstest"
)

// TestFindCustomers: by the beginning of the key, and by any words of the name, in any case, in
// pages of every size.
func TestFindCustomers(t *testing.T) {
	t.Parallel()
	s := planstest.PopulatedStore(t)
	for key, name := range map[string]string{
		"k1": "Müller & Söhne GmbH", "k2": "MÜLLER Brothers", "k3": "Foo-Bar, Inc.", "k4": `O'Neil \ "Quote"`,
		"d1": "Straße ﬁle ŉ İzmir Işık Ǆ", "d2": "STRASSE 7 ⅷ", "d3": "ΤΩΙΔΕ", "d4": "Ა ᏸ 𐐀 ＡＢ և", "d5": "®Acme☕ 🦊",
		"k5": "ΟΔΥΣΣΕΥΣ", "k6": "Ромашка Ёлка", "k7": "Łódź ØSTER", "k8": "1&1", "k9": strings.Repeat("한", 200), "muller": "Another",
	} {
		in := planstest.OnPlan("basic")
		in.Name = name
		planstest.PutCustomer(t, s, key, in)
	}
	for search, want := range map[string]string{
		"müller": "k1 k2", "MULLER": "k1 k2", "muller": "k1 k2 muller", "söhne mül": "k1", "gmbh": "k1", "ohne": "",
		"brothers müller": "k2", "foo bar": "k3", "bar-foo": "k3", "FOO": "k3", "o'neil": "k4", "quote": "k4", `\ '`: "", "'": "",
		"STRASSE": "d1 d2", "straße": "d1 d2", "STRAẞE": "d1 d2", "straß": "d1 d2", "stras": "d1 d2", "Straße 7": "d2", "FILE": "d1", "ﬁ": "d1", "ʼN": "d1",
		"izmir": "d1", "IZMİR": "d1", "ISIK": "d1",
		"ı": "d1 k3", "Ⅷ": "d2", "ǆ": "d1", "τῳδε": "d3", "ა": "d4", "Ᏸ": "d4", "𐐨": "d4", "ａｂ": "d4", "ԵՒ": "d4", "acme ☕": "d5", "☕": "d5", "🦊": "d5", "®": "d5",
		"οδυσσευς": "k5", "ΟΔΥΣΣΕΎς": "k5", "РОМАШКА елка": "k6", "ёл": "k6", "łódź": "k7", "øst": "k7", "1": "k8", "한한": "k9",
		"k": "k1 k2 k3 k4 k5 k6 k7 k8 k9", " k1 ": "k1", "k1 ": "k1", "K1": "", "mu": "k1 k2 muller", ".": "", "a/b": "", "%": "",
	} {
		walk(t, search, strings.Fields(want), func(p plans.Page) (*plans.List[*plans.Customer], error) {
			return s.FindCustomers(t.Context(), search, p)
		},
			func(c *plans.Customer) string { return c.Key })
	}
	if _, err := s.EraseCustomer(t.Context(), "k7"); err != nil {
		t.Fatal(err)
	}
	if list := planstest.Must[*plans.List[*plans.Customer]](t)(s.FindCustomers(t.Context(), "lódz", plans.Page{})); len(list.Items) > 0 {
		t.Errorf("an erased customer is found by its name: %+v", list.Items[0])
	}
}

// TestWordsOfNames: a name has the words of any other spelling that differs in case and accents only, and no
// word is too long to be stored.
func TestWordsOfNames(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"": "", "'": "", " \\ & | ! ( ) : * < > \u0301 ": "", "Straße": "strasse", "STRASSE": "strasse", "a'b\\c": "a b c", "e\u0301E": "ee", "ΐΰǰẖ": "ιυjh",
		"नमस्ते": "नमस्ते", "ＡＢ１": "ａｂ１", "x🦊y❤\ufe0f": "x 🦊 y ❤", "ꭰ": "Ꭰ", "a\u200bb": "a b",
	} {
		if got := strings.Join(store.WordsOf(name), " "); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
	for _, letter := range []string{"a", "ß", "한", "\U0001e900", "ΐ"} {
		long := store.WordsOf(strings.Repeat(letter, 5000))
		if len(long) != 1 || len(long[0]) > 2046 || !utf8.ValidString(long[0]) {
			t.Errorf("%s: %d words", letter, len(long))
		}
	}
	for r := range rune(unicode.MaxRune) {
		for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
			if a, b := store.WordsOf(string(r)), store.WordsOf(string(other)); !slices.Equal(a, b) {
				t.Errorf("%c has %q, and %c %q", r, a, other, b)
			}
		}
	}
	rapid.Check(t, func(r *rapid.T) {
		name := rapid.String().Draw(r, "name")
		want := store.WordsOf(name)
		for spelled, other := range map[string]string{"small": strings.ToLower(name), "composed": norm.NFC.String(name), "decomposed": norm.NFD.String(name)} {
			if got := store.WordsOf(other); !slices.Equal(got, want) {
				r.Fatalf("%q has %q, and %s %q", name, want, spelled, got)
			}
		}
		for _, word := range want {
			if strings.ContainsAny(word, `'\:&|!()<>* `) {
				r.Fatalf("%q has the word %q", name, word)
			}
		}
	})
}

// TestFindingIsFast: among many customers their names are found by the index, and common words and
// rare ones take little time, which the long form measures, whether PostgreSQL has counted the words yet
// or not.
func TestFindingIsFast(t *testing.T) {
	t.Parallel()
	customers := 100_000
	switch {
	case testing.Short():
		customers = 20_000
	case os.Getenv("QUOTAD_TEST_LONG") != "":
		customers = 1_000_000
	}
	s := planstest.PopulatedStore(t)
	ctx := testkit.Context(t)
	conn := planstest.Must[*pgxpool.Conn](t)(s.Pool().Acquire(ctx))
	defer conn.Release()
	run := func(statement string, args ...any) {
		t.Helper()
		if _, err := conn.Exec(ctx, statement, args...); err != nil {
			t.Fatal(err)
		}
	}
	run("SET statement_timeout = 0")
	run("ALTER TABLE customers SET (autovacuum_enabled = off)")
	var index string
	if err := conn.QueryRow(ctx, "SELECT pg_get_indexdef('customers_words'::regclass)").Scan(&index); err != nil {
		t.Fatal(err)
	}
	run("DROP INDEX customers_words") // which is slow to fill row by row
	run(`INSERT INTO customers (key, name, words, plan_id, joined_version, timezone, billing_anchor, change)
		SELECT 'cus_' || md5(n::text), 'Inc ' || left(md5(n::text), 4) || ' Word' || n, array_to_tsvector(ARRAY['inc', left(md5(n::text), 4), 'word' || n]),
			(SELECT min(id) FROM plans), 1, 'UTC', '2026-01-01T00:00:00', 1
		FROM generate_series(1, $1::integer) n`, customers)
	run(index)
	for _, analyzed := range []bool{false, true} {
		if analyzed {
			run("ANALYZE customers")
		}
		for _, search := range []string{"word777", "nothing", "inc", "inc a1", "inc nothing", "cus_", "w"} {
			var plan strings.Builder
			rows, _ := s.Pool().Query(ctx, "EXPLAIN "+store.FindCustomersSQL, "", store.QueryOf(search), "", "", 51)
			for rows.Next() {
				var line string
				if err := rows.Scan(&line); err != nil {
					t.Fatal(err)
				}
				plan.WriteString(line + "\n")
			}
			if rows.Err() != nil || !strings.Contains(plan.String(), "Bitmap Index Scan on customers_words") ||
				strings.Contains(plan.String(), "Seq Scan on customers") {
				t.Errorf("%s, analyzed %t: %v\n%s", search, analyzed, rows.Err(), plan.String())
			}
			began := time.Now()
			list := planstest.Must[*plans.List[*plans.Customer]](t)(s.FindCustomers(ctx, search, plans.Page{Limit: 50}))
			took := time.Since(began)
			if found := len(list.Items) > 0; found == slices.Contains([]string{"nothing", "inc nothing"}, search) {
				t.Errorf("%s: found %t", search, found)
			}
			t.Logf("analyzed %t, %s: %s", analyzed, search, took)
			testkit.AtMost(t, search, took, 5*time.Second)
		}
	}
}
