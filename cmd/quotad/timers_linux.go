package main

import (
	"os"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// timerSlack is how late timers may be. A thread of Go's runtime wakes up every 20 µs while
// system calls are about, to see which of them take long; that was a tenth of a busy node's
// processor time, and nothing here needs it so often. With this slack it wakes up once a
// millisecond.
const timerSlack = time.Millisecond

// relaxTimers gives all threads timerSlack. They have it from the thread that made them, and
// that one of the runtime's is there before any code of ours runs. So the program is executed
// again, in the same process; where that cannot be done it goes on as it is.
func relaxTimers() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if relaxed() {
		return
	}
	path, err := os.Executable()
	// Where it is refused, or ignored as for real-time threads, this would never end.
	if err != nil || unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(timerSlack), 0, 0, 0) != nil || !relaxed() {
		return
	}
	_ = syscall.Exec(path, os.Args, os.Environ())
}

// relaxed reports whether the thread has the slack.
func relaxed() bool {
	slack, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
	return err == nil && slack >= int(timerSlack)
}
