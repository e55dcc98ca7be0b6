package serve

import "testing"

// TestBodyMemory shows the share of bodies and answers by the memory of the node, in MiB.
func TestBodyMemory(t *testing.T) {
	for node, want := range map[int64]int64{0: 64, 128: 16, 256: 32, 512: 64, 4096: 64, 4097: 64, 8192: 128, 65536: 1024} {
		if got := bodyMemory(node<<20) >> 20; got != want {
			t.Errorf("of %d MiB bodies and answers have %d, not %d", node, got, want)
		}
	}
}
