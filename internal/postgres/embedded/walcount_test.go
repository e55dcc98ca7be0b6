package embedded

import "testing"

func TestCountWALFiles(t *testing.T) {
	t.Parallel()
	const mb = 1 << 20
	for _, c := range []struct {
		name              string
		least, size, free int64
		want              int
	}{
		{"as shipped", 256 * mb, 4 * mb, 1 << 40, 64},
		{"a large setting", 1 << 40, 4 * mb, 1 << 40, mostWALFiles},
		{"a small disk", 256 * mb, 4 * mb, 160 * mb, 10},
		{"a full disk", 256 * mb, 4 * mb, 0, 0},
		{"files larger than the setting", 32 * mb, 64 * mb, 1 << 40, 0},
	} {
		if got := countWALFiles(c.least, c.size, c.free); got != c.want {
			t.Errorf("%s: %d files, want %d", c.name, got, c.want)
		}
	}
}
