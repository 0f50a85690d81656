package postgresttest

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"time"
)

// Token makes a JSON Web Token for a role (HS256), of a life from now; a life of
// 0 does not expire, a negative one is over.
func Token(secret, role string, life time.Duration) string {
	claims := map[string]any{"role": role}
	if life != 0 {
		claims["exp"] = time.Now().Add(life).Unix()
	}
	body, _ := json.Marshal(claims)
	text := segment([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." + segment(body)
	return text + "." + segment(sign(secret, text))
}

func segment(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func sign(secret, text string) []byte {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

// roleOf tells in which role a request runs, and whether it named none.
func (s *Server) roleOf(r *http.Request) (role string, claims []byte, anon bool, fault *apiError) {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		if s.opts.Anon == "" {
			return "", nil, false, unauthorized("PGRST302", "Anonymous access is disabled")
		}
		return s.opts.Anon, []byte(`{"role":"` + s.opts.Anon + `"}`), true, nil
	}
	text, signature, ok := cutLast(token, ".")
	_, body, inner := strings.Cut(text, ".")
	if !ok || !inner {
		return "", nil, false, unauthorized("PGRST301", "JWSError (CompactDecodeError Invalid number of parts: Expected 3 parts; got 1)")
	}
	if sum, err := base64.RawURLEncoding.DecodeString(signature); err != nil || !hmac.Equal(sum, sign(s.opts.Secret, text)) {
		return "", nil, false, unauthorized("PGRST301", "JWSError JWSInvalidSignature")
	}
	claims, err := base64.RawURLEncoding.DecodeString(body)
	var c struct {
		Role string `json:"role"`
		Exp  *int64 `json:"exp"`
	}
	if err != nil || json.Unmarshal(claims, &c) != nil {
		return "", nil, false, unauthorized("PGRST301", "JWT claims are not an object")
	}
	if c.Exp != nil && *c.Exp < time.Now().Unix() {
		return "", nil, false, unauthorized("PGRST301", "JWT expired")
	}
	if c.Role == "" {
		return s.opts.Anon, claims, true, nil
	}
	return c.Role, claims, false, nil
}

func cutLast(s, sep string) (before, after string, ok bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

func unauthorized(code, message string) *apiError {
	e := failure(http.StatusUnauthorized, code, message)
	e.header = map[string]string{"WWW-Authenticate": `Bearer error="invalid_token", error_description="` + message + `"`}
	if code == "PGRST302" {
		e.header = map[string]string{"WWW-Authenticate": "Bearer"}
	}
	return e
}
