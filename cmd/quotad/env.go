package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"quotad/internal/api/request"
	"quotad/internal/postgres"
)

// envPrefix is the prefix of every setting's environment variable.
const envPrefix = "QUOTAD_"

const databaseURLFlag = "database-url"

// maxSecretFile is the maximum number of bytes that are read from a setting's file.
const maxSecretFile = 64 << 10

// envName returns the environment variable of a flag. It returns an empty string for a flag that is not a
// setting, such as --help or the name of a new key.
func envName(flag *kong.Flag) string {
	if flag.Name == "help" || flag.Tag.Has("argument") {
		return ""
	}
	return envOf(flag.Name)
}

// envOf returns the environment variable of a setting.
func envOf(flag string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// fromEnv returns the value of a flag that is not on the command line. The value comes from the variable NAME,
// or from the file whose path is in NAME_FILE. An empty variable counts as unset, because compose files and unit
// files set variables without a value to an empty string.
func (p *program) fromEnv(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	name := envName(flag)
	if name == "" {
		return nil, nil //nolint:nilnil // nil leaves the flag's value to kong
	}
	value, _ := p.lookupEnv(name)
	path, _ := p.lookupEnv(name + "_FILE")
	if path == "" {
		if value == "" {
			return nil, nil //nolint:nilnil // nil leaves the flag's value to kong
		}
		return value, nil
	}
	if value != "" {
		return nil, fmt.Errorf("%s and %s_FILE are both set: unset one", name, name)
	}
	text, err := readSetting(path)
	if err != nil {
		return nil, fmt.Errorf("%s_FILE: %w", name, err)
	}
	if flag.Name == databaseURLFlag {
		return postgres.InFile(path), nil // each new connection reads the file again, because the password may change
	}
	return text, nil
}

// unknownSettings returns a warning for each environment variable that looks like a setting but is not a setting
// of any command. The warning names the setting that was probably meant.
func (p *program) unknownSettings(model *kong.Application) (unknown []string) {
	if p.environ == nil {
		return nil
	}
	var known []string
	for _, command := range model.Leaves(false) {
		for _, flag := range command.Flags {
			if name := envName(flag); name != "" {
				known = append(known, name)
			}
		}
	}
	for _, variable := range p.environ() {
		name, value, _ := strings.Cut(variable, "=")
		if !strings.HasPrefix(name, envPrefix) || value == "" || ofService(name, value) {
			continue
		}
		setting := strings.TrimSuffix(name, "_FILE")
		if slices.Contains(known, setting) {
			continue
		}
		text := name + " is no setting of quotad's."
		if meant := request.Nearest(setting, known); meant != "" {
			text = name + " is no setting of quotad's: did you mean " + meant + name[len(setting):] + "?"
		}
		unknown = append(unknown, text)
	}
	slices.Sort(unknown)
	return unknown
}

// ofService reports whether Kubernetes sets the variable for a service named quotad.
func ofService(name, value string) bool {
	return strings.HasPrefix(name, envPrefix+"SERVICE_") || strings.HasPrefix(name, envPrefix+"PORT_") ||
		name == envPrefix+"PORT" && strings.Contains(value, "://")
}

// warnUnknown logs the warnings of unknownSettings.
func (p *program) warnUnknown(log *slog.Logger) {
	for _, text := range p.unknown {
		log.Warn(text + " See `quotad serve --help` for what there is.")
	}
}

// readSetting reads a value from a file, without the newline that editors append.
func readSetting(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxSecretFile+1))
	switch {
	case err != nil:
		return "", err
	case len(text) > maxSecretFile:
		return "", fmt.Errorf("%s has more than %d bytes", path, maxSecretFile)
	}
	value := strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r")
	if value == "" {
		return "", errors.New(path + " is empty")
	}
	return value, nil
}

// describe appends the default and the environment variable to a flag's help.
func describe(value *kong.Value) string {
	text := value.Help
	if value.Flag == nil {
		return text
	}
	if value.Default != "" {
		text += " Default: " + value.Default + "."
	}
	if name := envName(value.Flag); name != "" {
		text += " ($" + name + ")"
	}
	return text
}
