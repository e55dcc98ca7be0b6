package main

import (
	"errors"
	"os"
	"syscall"
	"time"
	"unsafe"

	"github.com/prometheus/procfs"
)

// dieWithUs gives a child a process group of its own, so that a Ctrl-C at the terminal
// reaches the bench only, which then stops it in order; and when the bench is killed the
// kernel asks the child to end.
func dieWithUs() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}

// inMemory reports whether a directory's files are in memory only.
func inMemory(dir string) bool {
	const tmpfs, ramfs = 0x01021994, 0x858458f6
	var s syscall.Statfs_t
	return syscall.Statfs(dir, &s) == nil && (s.Type == tmpfs || s.Type == ramfs)
}

// flush puts a file's data on the disk.
func flush(file *os.File) error { return syscall.Fdatasync(int(file.Fd())) }

// cpuModel is the processor's name, empty where it has none.
func cpuModel() string {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return ""
	}
	cpus, err := fs.CPUInfo()
	if err != nil || len(cpus) == 0 {
		return ""
	}
	return cpus[0].ModelName
}

// A watch tells which sockets have something to read.
type watch struct {
	epoll  int
	events [256]syscall.EpollEvent
	list   []int
}

func newWatch(sockets []*openConn) (*watch, error) {
	epoll, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return nil, err
	}
	w := &watch{epoll: epoll}
	for i, c := range sockets {
		event := syscall.EpollEvent{Events: syscall.EPOLLIN, Fd: int32(i)} // the field is the caller's to use
		if err := syscall.EpollCtl(epoll, syscall.EPOLL_CTL_ADD, c.fd, &event); err != nil {
			return nil, errors.Join(err, w.close())
		}
	}
	return w, nil
}

func (w *watch) close() error { return syscall.Close(w.epoll) }

// ready lists the numbers of sockets that may have something to read, without waiting.
func (w *watch) ready([]*openConn) ([]int, error) {
	n, err := syscall.EpollWait(w.epoll, w.events[:], 0)
	if errors.Is(err, syscall.EINTR) {
		return nil, nil
	}
	w.list = w.list[:0]
	for i := range n {
		w.list = append(w.list, int(w.events[i].Fd))
	}
	return w.list, err
}

// sleep waits for less than a timer of Go's can, and keeps its processor of Go's: giving
// it back and asking for it again, some 10,000 times a second, costs more than all else.
func sleep(d time.Duration) {
	spec := syscall.NsecToTimespec(d.Nanoseconds())
	//nolint:gosec // the system call takes a pointer
	_, _, _ = syscall.RawSyscall(syscall.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&spec)), 0, 0)
	// A signal may end it early; the caller looks at the clock.
}
