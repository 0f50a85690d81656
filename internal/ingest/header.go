package ingest

import (
	"net/http"
	"net/textproto"
	"strings"
)

// dropped are the headers that are never kept: credentials, and what concerns
// one connection only (RFC 9110 section 7.6.1).
var dropped = map[string]bool{
	"Authorization": true, "Proxy-Authorization": true, "Cookie": true,
	"X-Api-Key": true, "Api-Key": true, "Apikey": true, "X-Auth-Token": true, "X-Access-Token": true,
	"X-Hasura-Admin-Secret": true, "X-Gitlab-Token": true, "X-Telegram-Bot-Api-Secret-Token": true,
	"X-Amz-Security-Token": true,

	"Connection": true, "Proxy-Connection": true, "Keep-Alive": true, "Proxy-Authenticate": true,
	"Te": true, "Trailer": true, "Transfer-Encoding": true, "Upgrade": true, "Expect": true,
}

// kept returns the headers worth keeping: all but credentials and hop-by-hop
// headers. The values are shared with h.
func kept(h http.Header, secrets []string) http.Header {
	out := make(http.Header, len(h))
	for name, values := range h {
		if !dropped[name] && !holdsSecret(values, secrets) {
			out[name] = values
		}
	}
	for _, list := range h["Connection"] {
		for name := range strings.SplitSeq(list, ",") {
			delete(out, textproto.CanonicalMIMEHeaderKey(strings.TrimSpace(name)))
		}
	}
	return out
}

func holdsSecret(values, secrets []string) bool {
	for _, v := range values {
		for _, s := range secrets {
			if s != "" && strings.Contains(v, s) {
				return true
			}
		}
	}
	return false
}
