package embedded

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// serverSettings are the embedded server's settings; Options.Settings override them. No setting reduces
// durability, so an acknowledged hit is on the disk.
var serverSettings = map[string]string{
	"fsync":              "on",
	"synchronous_commit": "on",
	"full_page_writes":   "on",

	"max_connections": "100",
	"shared_buffers":  "512MB",
	// After a checkpoint, the first write to each page logs the whole page. For a hot table, whole pages make up
	// most of the WAL. Therefore checkpoints are rare and spread over time.
	"checkpoint_timeout": "15min",
	"max_wal_size":       "4GB",
	"min_wal_size":       "256MB", // see makeWALFiles

	// Counters are updated in place (HOT). The next look-up of a key in a page prunes the page's dead rows.
	// Vacuum should run often and briefly. It vacuums counters if pruning leaves too many dead rows (migration
	// 8).
	"autovacuum_naptime":                "10s",
	"autovacuum_vacuum_scale_factor":    "0.05",
	"autovacuum_analyze_scale_factor":   "0.05",
	"autovacuum_vacuum_cost_limit":      "1000",
	"log_autovacuum_min_duration":       "-1",
	"log_checkpoints":                   "off",
	"jit":                               "off", // compiling costs more than any of quotad's statements
	"update_process_title":              "off", // an update would cost two writes per statement
	"timezone":                          "UTC",
	"log_timezone":                      "UTC",
	"datestyle":                         "ISO, YMD",
	"lc_messages":                       "C", // quotad parses the log
	"restart_after_crash":               "on",
	"log_min_messages":                  "warning",
	"log_min_error_statement":           "panic", // statements contain customers' names
	"log_parameter_max_length":          "0",
	"log_parameter_max_length_on_error": "0",
}

// fixedSettings returns the settings that keep the server private and under quotad's control. They are on the
// command line, so nothing overrides them.
func (s *Server) fixedSettings() []string {
	l := s.layout
	return []string{
		"config_file=" + filepath.Join(l.dir, "postgresql.conf"),
		"hba_file=" + filepath.Join(l.dir, "pg_hba.conf"),
		"listen_addresses=",
		"port=" + socketPort,
		"unix_socket_directories=" + quoteDir(l.socketDir),
		"unix_socket_permissions=0700",
		"logging_collector=off",
		"log_destination=stderr",
		"log_line_prefix=" + logPrefix,
	}
}

// quoteDir quotes a directory for a setting that is a list of directories.
func quoteDir(dir string) string { return `"` + strings.ReplaceAll(dir, `"`, `""`) + `"` }

// serverArgs returns the arguments of the postmaster.
func (s *Server) serverArgs() []string {
	args := []string{"-D", s.layout.pgdata()}
	for _, setting := range s.fixedSettings() {
		args = append(args, "-c", setting)
	}
	return args
}

// writeConfig writes the configuration files that the server reads at its start.
func (s *Server) writeConfig(ctx context.Context) error {
	settings := maps.Clone(serverSettings)
	settings["wal_compression"] = s.walCompression(ctx)
	maps.Copy(settings, s.opts.Settings)
	var conf strings.Builder
	conf.WriteString("# Written by quotad at every start. Settings of your own go to custom.conf.\n")
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		fmt.Fprintf(&conf, "%s = '%s'\n", name, strings.ReplaceAll(settings[name], "'", "''"))
	}
	conf.WriteString("include_if_exists 'custom.conf'\n")
	if err := writeFile(filepath.Join(s.layout.dir, "postgresql.conf"), conf.String()); err != nil {
		return err
	}
	// Only the server's user and root may open the socket's directory, so no further authentication is needed.
	const hba = "# Written by quotad at every start.\nlocal all all trust\n"
	return writeFile(filepath.Join(s.layout.dir, "pg_hba.conf"), hba)
}

// walCompression returns lz4 if the server was built with it, and otherwise pglz.
func (s *Server) walCompression(ctx context.Context) string {
	_, err := s.run(ctx, "postgres", "-D", s.layout.pgdata(), "-c", "wal_compression=lz4", "-C", "wal_compression")
	if err != nil {
		return "pglz"
	}
	return "lz4"
}

// writeFile replaces the whole file at path. It replaces a symbolic link instead of following it. The files
// contain no secret and must be readable for the server's user.
func writeFile(path, text string) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // fails after the rename, which is fine
	_, err = f.WriteString(text)
	if err == nil {
		err = f.Chmod(0o644)
	}
	if err2 := f.Close(); err == nil {
		err = err2
	}
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
