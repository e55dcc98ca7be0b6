package faults

import (
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"quotad/internal/testkit"
)

// Each kind does to a request and its answer what it says, over TCP and to a Unix socket,
// and is counted; nothing of the proxy runs on afterwards.
func TestProxyBreaksAsTold(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	type ends struct{ all, part, none bool } // what is possible of the bytes
	all, part, nothing := ends{all: true}, ends{part: true}, ends{none: true}
	kinds := map[fault]struct{ heard, answer ends }{
		none:            {all, all},
		cutBefore:       {nothing, nothing},
		cutWithin:       {part, nothing},
		cutUnderWay:     {ends{all: true, none: true, part: true}, nothing},
		cutUnanswered:   {all, nothing},
		cutWithinAnswer: {all, part},
		stall:           {all, all},
	}
	is := func(got, whole string, e ends) bool {
		switch got {
		case "":
			return e.none
		case whole:
			return e.all
		}
		return e.part && strings.HasPrefix(whole, got)
	}
	for _, network := range []string{"tcp", "unix"} {
		for kind, want := range kinds {
			t.Run(network+"/"+kind.String(), func(t *testing.T) {
				defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
				at := "127.0.0.1:0"
				if network == "unix" {
					at = filepath.Join(t.TempDir(), "socket")
				}
				o := newOracle(t, network, at)
				defer o.running.Wait()
				defer o.listener.Close()
				p := newProxy(t, address{network, o.listener.Addr().String()}, overHTTP, newDice(1, 1, 5*time.Millisecond, kind))
				defer p.close()
				conn, err := net.Dial("tcp", p.addr())
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				answer, err := ask(t, conn)
				if !is(answer, reply, want.answer) || (err == nil) != want.answer.all {
					t.Errorf("the client got %q, %v", answer, err)
				}
				p.close()
				if !want.heard.none {
					o.hears(t)
				}
				_ = o.listener.Close()
				o.running.Wait()
				if heard, _ := o.knows(); !is(heard, question, want.heard) {
					t.Errorf("the server heard %q", heard)
				}
				for f := cutBefore; f < numFaults; f++ {
					if got, want := p.count(f), map[bool]int64{true: 1}[f == kind]; got != want {
						t.Errorf("%s: counted %d times, not %d", f, got, want)
					}
				}
			})
		}
	}
}

// Many clients at once, each of which asks over one connection while it lasts: all kinds
// happen, and each is counted as often as clients saw it.
func TestProxyUnderLoad(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	seed := testkit.Seed(t)
	o := newOracle(t, "tcp", "127.0.0.1:0")
	defer o.running.Wait()
	defer o.listener.Close()
	p := newProxy(t, address{"tcp", o.listener.Addr().String()}, overHTTP, newDice(seed, 0.2, time.Millisecond))
	defer p.close()
	var clients sync.WaitGroup
	var broken, answered [16]int64
	for c := range broken {
		clients.Go(func() {
			var conn net.Conn
			for range 100 {
				if conn == nil {
					var err error
					if conn, err = net.Dial("tcp", p.addr()); err != nil {
						t.Error(err)
						return
					}
				}
				if _, err := ask(t, conn); err != nil {
					broken[c]++
					_ = conn.Close()
					conn = nil
					continue
				}
				answered[c]++
			}
			if conn != nil {
				_ = conn.Close()
			}
		})
	}
	clients.Wait()
	p.close()
	var cuts, lost int64
	for f := cutBefore; f < numFaults; f++ {
		if p.count(f) == 0 {
			t.Errorf("%s: never happened", f)
		}
		if f != stall {
			cuts += p.count(f)
		}
	}
	for c := range broken {
		lost += broken[c]
	}
	if lost != cuts {
		t.Errorf("clients lost %d answers, %d were cut", lost, cuts)
	}
	_ = o.listener.Close()
	o.running.Wait()
	if _, done := o.knows(); done <= int(16*100-lost) {
		t.Errorf("%d done, %d answered: no answer was lost behind the deed", done, 16*100-lost)
	}
}

// A proxy whose server is away closes its clients' connections, and passes on to the one
// that it is told of later.
func TestProxyWithoutServer(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	gone := newOracle(t, "tcp", "127.0.0.1:0")
	_ = gone.listener.Close()
	p := newProxy(t, address{"tcp", gone.listener.Addr().String()}, overHTTP, newDice(1, 0, 0))
	defer p.close()
	for _, up := range []bool{false, true} {
		if up {
			o := newOracle(t, "tcp", "127.0.0.1:0")
			defer o.running.Wait()
			defer o.listener.Close()
			p.to(address{"tcp", o.listener.Addr().String()})
		}
		conn, err := net.Dial("tcp", p.addr())
		if err != nil {
			t.Fatal(err)
		}
		if answer, err := ask(t, conn); (answer == reply) != up || (err == nil) != up {
			t.Errorf("with a server %v: %q, %v", up, answer, err)
		}
		_ = conn.Close()
	}
	p.close() // cuts what is left, and may be called again
}

func TestDiceFollowTheirSeed(t *testing.T) {
	rolls := func(seed uint64) (all []blow) {
		d := newDice(seed, 0.3, time.Second)
		for range 10_000 {
			all = append(all, d.roll())
		}
		return all
	}
	if !slices.Equal(rolls(7), rolls(7)) || slices.Equal(rolls(7), rolls(8)) {
		t.Error("the seed does not decide")
	}
	var counts [numFaults]int
	for _, b := range rolls(7) {
		counts[b.fault]++
		if n := b.share(10); n < 1 || n > 9 || b.pause < 0 || b.pause >= time.Second {
			t.Fatalf("%+v passes on %d of 10 bytes", b, n)
		}
	}
	for f, n := range counts {
		if want := map[bool]int{true: 7000, false: 500}[fault(f) == none]; n < want*8/10 || n > want*12/10 {
			t.Errorf("%s: %d of 10,000", fault(f), n)
		}
	}
}
