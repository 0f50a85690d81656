package ingest

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
)

// The buffer a body begins with, where its length is announced and where it is
// not. It grows with what has really come, so that a Content-Length alone takes
// no memory.
const (
	firstRead        = 64 << 10
	firstReadUnknown = 4 << 10
)

// read reads the body up to the source's limit. ok is false if the request is
// to be answered at once.
func (r *request) read(w http.ResponseWriter) (reply, bool) {
	limit := r.source.MaxBody
	if r.ContentLength > limit {
		r.tooLarge(r.ContentLength)
		return tooLarge, false
	}
	size := min(limit, firstReadUnknown) + 1 // one more lets the last read see the end
	if r.ContentLength >= 0 {
		size = min(r.ContentLength, firstRead) + 1
	}
	if !r.reserve(size) {
		return retryLater(pauseOverloaded), false
	}
	// The reader tells net/http to let the sender read the 413 before the
	// connection ends, although it is still sending.
	body := http.MaxBytesReader(w, r.Body, limit)
	buf := make([]byte, 0, size)
	for {
		n, err := body.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		switch {
		case err == io.EOF:
			r.body = buf
			return reply{}, true
		case err != nil:
			return r.unreadable(err, len(buf)), false
		case len(buf) == cap(buf):
			grown := min(int64(cap(buf))*2, limit+1)
			if r.ContentLength >= 0 {
				grown = min(grown, r.ContentLength+1)
			}
			if !r.reserve(grown - int64(cap(buf))) {
				return retryLater(pauseOverloaded), false
			}
			buf = append(make([]byte, 0, grown), buf...)
		}
	}
}

// reserve takes n bytes from what all requests may hold together.
func (r *request) reserve(n int64) bool {
	r.reserved += n
	if r.h.inHand.Add(n) <= r.h.o.MaxInHand {
		return true
	}
	r.h.say(slog.LevelError, r.source.name, http.StatusServiceUnavailable,
		fmt.Sprintf("requests in hand hold more than %s bytes. The sender is told to come back.", digits(r.h.o.MaxInHand)))
	return false
}

func (r *request) tooLarge(length int64) {
	size := "the body"
	if length >= 0 {
		size = fmt.Sprintf("a body of %s bytes", digits(length))
	}
	r.h.say(slog.LevelWarn, r.source.name, http.StatusRequestEntityTooLarge,
		fmt.Sprintf("%s is more than max_body, %s bytes", size, digits(r.source.MaxBody)))
}

// unreadable tells a body that is malformed from one whose sender went away or
// is too slow. The latter may come again: nothing was wrong with it.
func (r *request) unreadable(err error, have int) reply {
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		r.tooLarge(r.ContentLength)
		return tooLarge
	}
	var network net.Error
	isNetwork := errors.As(err, &network)
	switch {
	case isNetwork && network.Timeout():
		r.h.say(slog.LevelWarn, r.source.name, http.StatusServiceUnavailable,
			fmt.Sprintf("the body did not come in time: %s bytes of it were received", digits(int64(have))))
		return retryLater(pauseOverloaded)
	case isNetwork, errors.Is(err, io.ErrUnexpectedEOF), r.Context().Err() != nil:
		r.h.say(slog.LevelInfo, r.source.name, 0,
			fmt.Sprintf("the sender went away after %s bytes of the body", digits(int64(have))))
		return gone
	}
	r.h.say(slog.LevelWarn, r.source.name, http.StatusBadRequest, fmt.Sprintf("the body cannot be read: %v", err))
	return malformed
}

// digits renders a number with commas: 1,204.
func digits(n int64) string {
	s := fmt.Sprint(n)
	var b strings.Builder
	for i, c := range s {
		if i > 0 && (len(s)-i)%3 == 0 && s[i-1] != '-' {
			b.WriteByte(',')
		}
		b.WriteRune(c)
	}
	return b.String()
}
