package main

import (
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// slackVariable has the test program do what main does, and say how late its timers may be.
const slackVariable = "QUOTAD_TEST_PRINT_SLACK"

func init() {
	if os.Getenv(slackVariable) == "" {
		return
	}
	relaxTimers()
	slack := make(chan int)
	go func() {
		runtime.LockOSThread() // and never unlock: main has the first thread
		ns, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
		if err != nil {
			panic(err)
		}
		slack <- ns
	}()
	os.Stdout.WriteString(strconv.Itoa(<-slack))
	os.Exit(0)
}

// A program that was started as usual has threads with more slack, in the process it was
// started as.
func TestRelaxTimers(t *testing.T) {
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), slackVariable+"=1")
	out, err := child.Output()
	if err != nil || string(out) != strconv.Itoa(int(timerSlack)) {
		t.Errorf("a slack of %s ns, not %d; %v", out, timerSlack, err)
	}
}
