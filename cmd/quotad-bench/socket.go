package main

import (
	"errors"
	"fmt"
	"net"
	"syscall"
)

// A socket is a connection that Go's runtime does not know of, so that it wakes nobody.
// Reading and writing never wait.
type socket struct {
	fd int
	in []byte
	n  int // of in
}

// openSocket connects to an address such as 127.0.0.1:8080.
func openSocket(address string) (*socket, error) {
	to, err := net.ResolveTCPAddr("tcp4", address)
	if err != nil {
		return nil, err
	}
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		return nil, fmt.Errorf("make a socket: %w", err)
	}
	s := &socket{fd: fd, in: make([]byte, maxAnswer)}
	syscall.CloseOnExec(fd)
	err = syscall.SetsockoptInt(fd, syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1)
	if err == nil {
		err = syscall.Connect(fd, &syscall.SockaddrInet4{Port: to.Port, Addr: [4]byte(to.IP.To4())})
	}
	if err == nil {
		err = syscall.SetNonblock(fd, true)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("connect to %s: %w", address, err), s.close())
	}
	return s, nil
}

func (s *socket) close() error { return syscall.Close(s.fd) }

var errCutOff = errors.New("the connection was closed")

// send writes a request, for which an idle connection always has room.
func (s *socket) send(request []byte) error {
	n, err := syscall.Write(s.fd, request)
	if err == nil && n < len(request) {
		err = errors.New("no room for a request")
	}
	return err
}

// receive reads what is there; status is 0 until an answer is whole.
func (s *socket) receive() (status int, err error) {
	more, err := syscall.Read(s.fd, s.in[s.n:])
	switch {
	case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.EINTR):
		return 0, nil
	case err != nil:
		return 0, err
	case more == 0:
		return 0, errCutOff
	}
	s.n += more
	status, _, size, err := parseAnswer(s.in[:s.n])
	if size > 0 {
		s.n = 0
	}
	return status, err
}
