package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/prometheus/procfs"
)

// machine describes what was measured on; nothing in it tells which machine it was.
type machine struct {
	CPU        string            `json:"cpu"`
	Cores      int               `json:"cores"`
	Memory     float64           `json:"memory_gb"`
	System     string            `json:"system"`
	Go         string            `json:"go"`
	PostgreSQL string            `json:"postgresql"`
	Settings   map[string]string `json:"postgresql_settings"`
	Wrk        string            `json:"wrk"`
	Redis      string            `json:"redis"`
	Flush      float64           `json:"flush_ms"` // of 8 KiB to the data's disk, median
}

// describe looks at the machine and at the programs. What it cannot learn stays empty.
func (b *bench) describe(ctx context.Context) (m machine, err error) {
	m = machine{Cores: runtime.NumCPU(), Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH}
	m.CPU = cpuModel()
	if fs, err := procfs.NewDefaultFS(); err == nil {
		if memory, err := fs.Meminfo(); err == nil && memory.MemTotalBytes != nil {
			m.Memory = float64(*memory.MemTotalBytes) / 1e9
		}
	}
	if text, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.System += ", kernel " + strings.TrimSpace(string(text))
	}
	out, _ := exec.CommandContext(ctx, "wrk", "-v").CombinedOutput() // it fails, and prints it
	if words := strings.Fields(string(out)); len(words) > 1 && words[0] == "wrk" {
		m.Wrk = words[1]
	}
	if cmd, err := redisCommand(ctx, "--version"); err == nil {
		out, _ := cmd.Output()
		if _, version, ok := strings.Cut(string(out), "v="); ok {
			m.Redis, _, _ = strings.Cut(version, " ")
		}
	}
	if err := b.describeServer(ctx, &m); err != nil {
		return m, err
	}
	m.Flush, err = flushCost(b.dir)
	return m, err
}

const settingsSQL = `
SELECT name, current_setting(name) FROM pg_settings
WHERE name IN ('server_version', 'fsync', 'synchronous_commit', 'full_page_writes', 'wal_compression', 'shared_buffers',
               'max_wal_size', 'checkpoint_timeout', 'commit_delay', 'wal_sync_method')`

func (b *bench) describeServer(ctx context.Context, m *machine) error {
	rows, err := b.service.db.Query(ctx, settingsSQL)
	if err != nil {
		return err
	}
	defer rows.Close()
	m.Settings = map[string]string{}
	for rows.Next() {
		var name, value string
		if err := rows.Scan(&name, &value); err != nil {
			return err
		}
		m.Settings[name] = value
	}
	m.PostgreSQL = m.Settings["server_version"]
	delete(m.Settings, "server_version")
	return rows.Err()
}

// flushCost is the median time, ms, to write a page over an older one and have it on the
// disk, as PostgreSQL does at each commit.
func flushCost(dir string) (float64, error) {
	const pages, page = 200, 8 << 10
	file, err := os.Create(filepath.Join(dir, "flush"))
	if err != nil {
		return 0, err
	}
	defer file.Close()
	if _, err := file.Write(make([]byte, pages*page)); err != nil {
		return 0, err
	}
	if err := file.Sync(); err != nil {
		return 0, err
	}
	took := make([]float64, 0, pages)
	text := make([]byte, page)
	for i := range pages {
		text[0] = byte(i)
		began := time.Now()
		if _, err := file.WriteAt(text, int64(i*page)); err != nil {
			return 0, err
		}
		if err := flush(file); err != nil {
			return 0, err
		}
		took = append(took, float64(time.Since(began).Nanoseconds())/1e6)
	}
	return spreadOf(took).Median, nil
}
