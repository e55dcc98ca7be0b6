package main

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

//go:embed load.lua
var loadScript []byte

// A closed is what a closed loop of load came to: each connection sends when it has been
// answered.
type closed struct {
	operations int           // requests answered; of reservations, pairs of them
	statuses   int           // answers that were no success
	took       time.Duration // by the load maker's clock
	cpu        time.Duration // of the load maker
}

// rate is operations a second.
func (c closed) rate() float64 { return per(float64(c.operations), c.took.Seconds()) }

// beside adds a run that went on at the same time.
func (c closed) beside(d closed) closed {
	return closed{
		operations: c.operations + d.operations, statuses: c.statuses + d.statuses,
		took: max(c.took, d.took), cpu: c.cpu + d.cpu,
	}
}

// wrkSlack is how much longer than its load wrk may take: to start, and to wait for what
// is under way.
const wrkSlack = 30 * time.Second

// samplesASecond bounds how many requests a second a run with samples makes before it
// begins with them again.
const samplesASecond = 200_000

// A wrkRun is one process of wrk, with one thread, to be started.
type wrkRun struct {
	args, env []string
	took      time.Duration // what it is told to take
}

// wrkCommand prepares a run. name sets its files apart from those of another that runs at
// the same time.
func (b *bench) wrkCommand(name, address string, conns int, d time.Duration, t template) (wrkRun, error) {
	env, err := b.wrkEnv(name, d, t)
	args := []string{
		"-t1", "-c" + strconv.Itoa(conns), fmt.Sprintf("-d%ds", int(d.Seconds())), "--timeout", "10s",
		"-s", filepath.Join(b.dir, "load.lua"), "http://" + address + "/",
	}
	return wrkRun{args: args, env: env, took: d}, err
}

func (w wrkRun) run(ctx context.Context) (closed, error) {
	ctx, cancel := context.WithTimeout(ctx, w.took+wrkSlack)
	defer cancel()
	cmd := exec.CommandContext(ctx, "wrk", w.args...)
	cmd.Env = append(os.Environ(), w.env...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	c, err := spawn("wrk", cmd)
	if err != nil {
		return closed{}, err
	}
	<-c.ended // bounded by ctx
	switch {
	case ctx.Err() != nil:
		return closed{}, fmt.Errorf("wrk did not end in time: %w\n%s", context.Cause(ctx), out.String())
	case c.err != nil:
		return closed{}, fmt.Errorf("wrk: %w\n%s", c.err, out.String())
	}
	got, err := parseWrk(out.String())
	got.cpu = c.cpu()
	return got, err
}

// wrkEnv tells load.lua what to send.
func (b *bench) wrkEnv(name string, d time.Duration, t template) (env []string, err error) {
	b.seed++
	set := func(key, value string) { env = append(env, key+"="+value) }
	set("SEED", strconv.FormatUint(b.seed, 10))
	if len(t.list) > 0 {
		path := filepath.Join(b.dir, "list-"+name)
		var text strings.Builder
		for _, request := range t.list {
			fmt.Fprintf(&text, "%d\n%s", len(request), request)
		}
		set("LIST", path)
		return env, os.WriteFile(path, []byte(text.String()), 0o600)
	}
	set("HEAD", t.head)
	set("MID", t.mid)
	set("TAIL", t.tail)
	set("FROM", strconv.Itoa(t.from))
	set("COUNT", strconv.Itoa(t.count))
	if t.ids {
		set("IDS", strconv.Itoa(firstID))
	}
	if t.pick == zipf {
		path := filepath.Join(b.dir, "samples-"+name)
		set("SAMPLES", path)
		choose := t.chooser(b.seed)
		var text []byte
		for range int(d.Seconds()) * samplesASecond {
			text = append(strconv.AppendInt(text, int64(t.from+choose()), 10), '\n')
		}
		err = os.WriteFile(path, text, 0o600)
	}
	return env, err
}

var errNoResult = errors.New("wrk printed no result")

// parseWrk reads the line that load.lua prints in the end.
func parseWrk(out string) (closed, error) {
	_, line, ok := strings.Cut(out, "quotad-bench ")
	if !ok {
		return closed{}, fmt.Errorf("%w:\n%s", errNoResult, out)
	}
	var requests, micros, statuses, connect, read, write, timeout int
	if _, err := fmt.Sscan(line, &requests, &micros, &statuses, &connect, &read, &write, &timeout); err != nil {
		return closed{}, fmt.Errorf("%w (%w):\n%s", errNoResult, err, out)
	}
	got := closed{operations: requests, statuses: statuses, took: time.Duration(micros) * time.Microsecond}
	if connect+read+write+timeout > 0 || requests == 0 {
		return got, fmt.Errorf("of wrk's connections %d could not be made, %d broke while reading and %d while writing, and %d requests were late, of %d",
			connect, read, write, timeout, requests)
	}
	return got, nil
}
