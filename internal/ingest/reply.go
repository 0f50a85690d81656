package ingest

import (
	"io"
	"net/http"
	"strconv"

	"github.com/hookfold/hookfold/source"
)

// reply is an answer to be sent. A status of 0 sends none: nobody listens.
type reply struct {
	status     int
	body       string
	allow      string
	retryAfter string
	handshake  *source.Answer
}

var (
	received     = reply{status: http.StatusOK, body: `{"received":true}` + "\n"}
	malformed    = reply{status: http.StatusBadRequest, body: `{"error":"malformed request"}` + "\n"}
	unauthorized = reply{status: http.StatusUnauthorized, body: `{"error":"unauthorized"}` + "\n"}
	notFound     = reply{status: http.StatusNotFound, body: `{"error":"not found"}` + "\n"}
	notAllowed   = reply{status: http.StatusMethodNotAllowed, body: `{"error":"method not allowed"}` + "\n", allow: http.MethodPost}
	tooLarge     = reply{status: http.StatusRequestEntityTooLarge, body: `{"error":"too large"}` + "\n"}
	gone         = reply{}
)

func (p reply) write(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	body, contentType := p.body, "application/json"
	if a := p.handshake; a != nil {
		body, contentType = string(a.Body), a.ContentType
		if contentType == "" {
			contentType = "text/plain; charset=utf-8"
		}
	}
	h.Set("Content-Type", contentType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("X-Content-Type-Options", "nosniff")
	if p.allow != "" {
		h.Set("Allow", p.allow)
	}
	if p.retryAfter != "" {
		h.Set("Retry-After", p.retryAfter)
	}
	w.WriteHeader(p.status)
	if r.Method != http.MethodHead {
		// A client that does not wait for its answer takes no harm: the
		// delivery is durable, or was refused.
		_, _ = io.WriteString(w, body)
	}
}
