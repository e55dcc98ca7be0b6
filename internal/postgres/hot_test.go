package postgres_test

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The tables that hits write. Who outgrows a server distributes them by shard, and leaves the others
// where they are. So a statement names tables of one of the two kinds only, and the package that owns
// the hot ones, with those below it, is the only one that names them.
var hotTables = []string{
	"counters", "usage", "receipts_0", "receipts_1", "receipts_2", "holds", "adjustments", "refusals", "archived_sums", "levels",
	"thresholds",
}

const hotOwner = "../../internal/quota/"

// TestHotTablesHaveOneOwner reads all SQL of the program. Test kits and the bench are not part of it.
// Migrations are not read: they make both kinds.
func TestHotTablesHaveOneOwner(t *testing.T) {
	t.Parallel()
	tables := allTables(t)
	for _, hot := range hotTables {
		if !tables[hot] {
			t.Errorf("no migration makes the hot table %s", hot)
		}
	}
	found := make(map[string]int) // statements that name a hot table, by directory
	for _, dir := range []string{"../../internal", "../../cmd"} {
		err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case entry.IsDir() && entry.Name() == "testkit":
				return filepath.SkipDir
			case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
				return nil
			}
			texts, err := stringsOf(path)
			for _, text := range texts {
				hot, fault := hotFault(text, tables, strings.HasPrefix(path, hotOwner))
				if fault != "" {
					t.Errorf("%s: %s: %s", path, fault, text)
				}
				if hot {
					found[filepath.Dir(path)]++
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{"", "lane", "locked", "upkeep", "usage"} {
		if found[filepath.Join(hotOwner, dir)] == 0 {
			t.Errorf("no statement on a hot table in %s: are statements written otherwise now? Found: %v", dir, slices.Sorted(maps.Keys(found)))
		}
	}
}

// TestHotFaults: what the test above finds.
func TestHotFaults(t *testing.T) {
	t.Parallel()
	tables := map[string]bool{"counters": true, "usage": true, "holds": true, "customers": true, "meters": true}
	for sql, want := range map[string]struct {
		owner bool
		fault string
	}{
		"SELECT units FROM counters WHERE shard = $1":                                  {true, ""},
		"SELECT units FROM ONLY usage":                                                 {false, "outside"},
		"UPDATE counters SET units = 0":                                                {false, "outside"},
		"DELETE FROM counters c USING holds h WHERE c.shard = h.shard":                 {true, ""},
		"SELECT FROM meters m, counters c WHERE m.id = c.meter":                        {true, "cold"},
		"DELETE FROM counters c USING customers k":                                     {true, "cold"},
		"INSERT INTO usage SELECT 1 FROM unnest($1::int[]) u JOIN customers k ON true": {true, "cold"},
		"SELECT FROM customers WHERE EXISTS (SELECT FROM usage)":                       {true, "cold"},
		"SELECT FROM customers":                                                        {false, ""},
		"the usage of counters":                                                        {false, ""},
		"WITH usage AS (SELECT 1) SELECT FROM usage, customers":                        {false, ""},
		"SELECT at -- FROM counters\nFROM customers":                                   {false, ""},
		"WITH RECURSIVE k AS (SELECT FROM holds WHERE shard = $1 UNION ALL SELECT FROM k, holds h WHERE h.shard = $1)": {true, ""},
		"WITH RECURSIVE k AS (SELECT FROM holds WHERE shard = $1 UNION ALL SELECT FROM k, holds h WHERE h.x > k.x)":    {true, "shard"},
		"WITH RECURSIVE k AS (SELECT shard FROM holds) SELECT FROM k":                                                  {true, "shard"},
	} {
		_, fault := hotFault(sql, tables, want.owner)
		if want.fault == "" && fault != "" || !strings.Contains(fault, want.fault) {
			t.Errorf("%s: %q, want %q", sql, fault, want.fault)
		}
	}
}

var (
	madeTable = regexp.MustCompile(`(?i)CREATE (?:UNLOGGED )?TABLE (?:IF NOT EXISTS )?(\w+)`)
	// After one of these stands a table, or a list of tables with commas between.
	beforeTable = regexp.MustCompile(`^(FROM|JOIN|INTO|UPDATE|USING|TABLE|TRUNCATE|LOCK|ONLY)$`)
	isShard     = regexp.MustCompile(`\bshard = \$\d`)
)

// allTables are the tables that migrations make.
func allTables(t *testing.T) map[string]bool {
	t.Helper()
	files, err := filepath.Glob("../../migrations/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	tables := make(map[string]bool)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range madeTable.FindAllStringSubmatch(string(text), -1) {
			tables[m[1]] = true
		}
	}
	return tables
}

// hotFault reports whether a statement names a hot table, and what is wrong with that. owner: the
// statement stands in a package that may.
func hotFault(sql string, tables map[string]bool, owner bool) (hot bool, fault string) {
	var hots, colds []string
	for _, table := range tablesOf(sql) {
		switch {
		case slices.Contains(hotTables, table):
			hots = append(hots, table)
		case tables[table]:
			colds = append(colds, table)
		}
	}
	switch {
	case len(hots) == 0:
		return false, ""
	case len(colds) > 0:
		return true, "the hot table " + hots[0] + " stands beside the cold one " + colds[0]
	case !owner:
		return true, "the hot table " + hots[0] + " is named outside of its owner"
	case strings.Contains(sql, "RECURSIVE") && len(isShard.FindAllString(sql, -1)) < len(hots):
		return true, "a recursive walk over " + hots[0] + " has no shard = $n for each of its tables"
	}
	return true, ""
}

// tablesOf are the names that stand where a statement names tables, but for those of its WITH.
func tablesOf(sql string) (names []string) {
	tokens := slices.DeleteFunc(sqlToken.FindAllString(sql, -1), func(s string) bool {
		return strings.HasPrefix(s, "--") || strings.HasPrefix(s, "/*")
	})
	own := make(map[string]bool)
	for i, token := range tokens {
		if token == "AS" && i > 0 && i+1 < len(tokens) && (tokens[i+1] == "(" || tokens[i+1] == "MATERIALIZED" || tokens[i+1] == "NOT") {
			own[tokens[i-1]] = true
		}
	}
	depth, list := 0, map[int]bool{} // whether a depth of parentheses is within a FROM
	for i, token := range tokens {
		switch token {
		case "(":
			depth++
			list[depth] = false
		case ")":
			depth--
		case "FROM", "USING":
			list[depth] = true
		case "WHERE", "GROUP", "ORDER", "LIMIT", "SELECT", "SET", "UNION":
			list[depth] = false
		}
		if i > 0 && (beforeTable.MatchString(tokens[i-1]) || tokens[i-1] == "," && list[depth]) && !own[token] {
			names = append(names, token)
		}
	}
	return names
}
