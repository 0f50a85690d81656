package tdstest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"unicode/utf16"
)

// The kinds of packets (MS-TDS 2.2.3.1.1).
const (
	packetBatch       = 0x01
	packetRPC         = 0x03
	packetReply       = 0x04
	packetAttention   = 0x06
	packetTransaction = 0x0E
	packetLogin       = 0x10
	packetPrelogin    = 0x12
)

const (
	statusEnd   = 0x01
	statusReset = 0x08
	headerSize  = 8
	packetSize  = 4096
	mostMessage = 64 << 20
)

// What pre-login says of encryption.
const (
	encryptOn  = 1
	encryptNot = 2
)

func readMessage(r io.Reader) (kind byte, body []byte, reset bool, err error) {
	for {
		var h [headerSize]byte
		if _, err := io.ReadFull(r, h[:]); err != nil {
			return 0, nil, false, err
		}
		n := int(binary.BigEndian.Uint16(h[2:])) - headerSize
		if n < 0 || len(body)+n > mostMessage {
			return 0, nil, false, errors.New("a packet has a wrong length")
		}
		part := make([]byte, n)
		if _, err := io.ReadFull(r, part); err != nil {
			return 0, nil, false, err
		}
		body = append(body, part...)
		reset = reset || h[1]&statusReset != 0
		if h[1]&statusEnd != 0 {
			return h[0], body, reset, nil
		}
	}
}

func writeMessage(w io.Writer, kind byte, body []byte) error {
	for id := byte(1); ; id++ {
		part := body
		status := byte(statusEnd)
		if len(part) > packetSize-headerSize {
			part, status = part[:packetSize-headerSize], 0
		}
		h := []byte{kind, status, 0, 0, 0, 0, id, 0}
		binary.BigEndian.PutUint16(h[2:], uint16(headerSize+len(part)))
		if _, err := w.Write(append(h, part...)); err != nil {
			return err
		}
		body = body[len(part):]
		if status == statusEnd {
			return nil
		}
	}
}

// handshake is the connection under TLS while that is agreed upon: what it says
// then travels in pre-login packets (MS-TDS 2.2.6.5).
type handshake struct {
	net.Conn
	done bool
	left []byte
}

func (h *handshake) Read(b []byte) (int, error) {
	if h.done && len(h.left) == 0 {
		return h.Conn.Read(b)
	}
	if len(h.left) == 0 {
		_, body, _, err := readMessage(h.Conn)
		if err != nil {
			return 0, err
		}
		h.left = body
	}
	n := copy(b, h.left)
	h.left = h.left[n:]
	return n, nil
}

func (h *handshake) Write(b []byte) (int, error) {
	if h.done {
		return h.Conn.Write(b)
	}
	return len(b), writeMessage(h.Conn, packetPrelogin, b)
}

// encryption reads what a client's pre-login says of encryption.
func encryption(body []byte) (byte, error) {
	for i := 0; i+5 <= len(body) && body[i] != 0xFF; i += 5 {
		at := int(binary.BigEndian.Uint16(body[i+1:]))
		if body[i] == 1 && at < len(body) {
			return body[at], nil
		}
	}
	return 0, errors.New("the pre-login says nothing of encryption")
}

func prelogin(encrypt byte) []byte {
	// Version, encryption, instance, thread, MARS; then their values.
	options := []struct {
		token byte
		value []byte
	}{{0, []byte{13, 0, 0, 0, 0, 0}}, {1, []byte{encrypt}}, {2, []byte{0}}, {3, []byte{0, 0, 0, 0}}, {4, []byte{0}}}
	at := 5*len(options) + 1
	var head, values []byte
	for _, o := range options {
		head = append(head, o.token)
		head = binary.BigEndian.AppendUint16(head, uint16(at+len(values)))
		head = binary.BigEndian.AppendUint16(head, uint16(len(o.value)))
		values = append(values, o.value...)
	}
	return append(append(head, 0xFF), values...)
}

// reader reads what a client has sent. After the first fault it reads zeros.
type reader struct {
	b   []byte
	err error
}

func (r *reader) take(n int) []byte {
	if r.err != nil || n < 0 || n > len(r.b) {
		if r.err == nil {
			r.err = io.ErrUnexpectedEOF
		}
		return make([]byte, max(0, min(n, 8)))
	}
	out := r.b[:n]
	r.b = r.b[n:]
	return out
}

func (r *reader) u8() byte    { return r.take(1)[0] }
func (r *reader) u16() uint16 { return binary.LittleEndian.Uint16(r.take(2)) }
func (r *reader) u32() uint32 { return binary.LittleEndian.Uint32(r.take(4)) }
func (r *reader) u64() uint64 { return binary.LittleEndian.Uint64(r.take(8)) }

func (r *reader) short() string { return text(r.take(2 * int(r.u8()))) }

// headers passes over what stands before a request (MS-TDS 2.2.5.3).
func (r *reader) headers() {
	if n := int(r.u32()); n >= 4 {
		r.take(n - 4)
	} else if r.err == nil {
		r.err = errors.New("a request has no headers")
	}
}

func text(b []byte) string {
	u := make([]uint16, len(b)/2)
	for i := range u {
		u[i] = binary.LittleEndian.Uint16(b[2*i:])
	}
	return string(utf16.Decode(u))
}

func parse(kind byte, body []byte) (Request, error) {
	r := &reader{b: body}
	var out Request
	switch kind {
	case packetLogin:
		out = login(r)
	case packetBatch:
		r.headers()
		out = Request{Kind: Batch, SQL: text(r.b)}
	case packetRPC:
		r.headers()
		out = call(r)
	case packetTransaction:
		r.headers()
		switch what := r.u16(); what {
		case 5:
			out = Request{Kind: Begin, Isolation: r.u8()}
		case 7:
			out = Request{Kind: Commit}
		case 8:
			out = Request{Kind: Rollback}
		default:
			return out, fmt.Errorf("unknown transaction request %d", what)
		}
	default:
		return out, fmt.Errorf("unknown packet %#x", kind)
	}
	return out, r.err
}

// login reads the names that a login gives (MS-TDS 2.2.6.4).
func login(r *reader) Request {
	b := r.b
	at := func(offset int) string {
		if offset+4 > len(b) {
			r.err = io.ErrUnexpectedEOF
			return ""
		}
		from, n := int(binary.LittleEndian.Uint16(b[offset:])), 2*int(binary.LittleEndian.Uint16(b[offset+2:]))
		if from+n > len(b) {
			r.err = io.ErrUnexpectedEOF
			return ""
		}
		return text(b[from : from+n])
	}
	return Request{Kind: Login, User: at(40), App: at(48), SQL: at(68)}
}

// executeSQL is sp_executesql's number.
const executeSQL = 10

func call(r *reader) Request {
	out := Request{Kind: Call}
	number := 0
	if n := r.u16(); n == 0xFFFF {
		number = int(r.u16())
	} else {
		out.SQL = text(r.take(2 * int(n)))
	}
	r.u16() // options
	for r.err == nil && len(r.b) > 0 {
		out.Params = append(out.Params, r.param())
	}
	if number == executeSQL || strings.EqualFold(out.SQL, "sp_executesql") {
		out.SQL, out.Params = out.Params[0].Value, out.Params[1:]
		if len(out.Params) > 0 {
			out.Declared, out.Params = out.Params[0].Value, out.Params[1:]
		}
	}
	return out
}

// The types of parameters that are known (MS-TDS 2.2.5.4).
const (
	typeNull     = 0x1F
	typeIntN     = 0x26
	typeBitN     = 0x68
	typeNVarChar = 0xE7
	typeVarChar  = 0xA7
	collation    = 5 // bytes
)

func (r *reader) param() Param {
	p := Param{Name: r.short()}
	r.u8() // status
	switch t := r.u8(); t {
	case typeNull:
		p.Null = true
	case typeIntN, typeBitN:
		p.Type = map[byte]string{1: "tinyint", 2: "smallint", 4: "int", 8: "bigint"}[r.u8()]
		var n int64
		switch r.u8() {
		case 0:
			p.Null = true
		case 1:
			n = int64(r.u8())
		case 2:
			n = int64(int16(r.u16()))
		case 4:
			n = int64(int32(r.u32()))
		case 8:
			n = int64(r.u64())
		}
		p.Value = fmt.Sprint(n)
	case typeNVarChar, typeVarChar:
		p.Type = map[byte]string{typeNVarChar: "nvarchar", typeVarChar: "varchar"}[t]
		most := r.u16()
		r.take(collation)
		var b []byte
		if most == 0xFFFF {
			p.Type += "(max)"
			b, p.Null = r.chunks()
		} else if n := r.u16(); n == 0xFFFF {
			p.Null = true
		} else {
			b = r.take(int(n))
		}
		if t == typeNVarChar {
			p.Value = text(b)
		} else {
			p.Value = string(b)
		}
	default:
		if r.err == nil {
			r.err = fmt.Errorf("unknown type %#x of a parameter", t)
		}
	}
	return p
}

// chunks reads a value of a (max) type.
func (r *reader) chunks() (b []byte, null bool) {
	if r.u64() == 0xFFFFFFFFFFFFFFFF {
		return nil, true
	}
	for r.err == nil {
		n := int(r.u32())
		if n == 0 {
			break
		}
		b = append(b, r.take(n)...)
	}
	return b, false
}

// The tokens of an answer (MS-TDS 2.2.7).
const (
	tokenColumns    = 0x81
	tokenError      = 0xAA
	tokenLoginAck   = 0xAD
	tokenRow        = 0xD1
	tokenEnv        = 0xE3
	tokenDone       = 0xFD
	tokenDoneProc   = 0xFE
	tokenDoneInProc = 0xFF

	doneMore      = 0x01
	doneError     = 0x02
	doneCount     = 0x10
	doneAttention = 0x20

	envBegin    = 8
	envCommit   = 9
	envRollback = 10
)

type writer struct{ b []byte }

func (w *writer) u16(n int) { w.b = binary.LittleEndian.AppendUint16(w.b, uint16(n)) }
func (w *writer) u32(n int) { w.b = binary.LittleEndian.AppendUint32(w.b, uint32(n)) }

func ucs2(s string) []byte {
	var out []byte
	for _, u := range utf16.Encode([]rune(s)) {
		out = binary.LittleEndian.AppendUint16(out, u)
	}
	return out
}

func (w *writer) short(s string) {
	b := ucs2(s)
	w.b = append(append(w.b, byte(len(b)/2)), b...)
}

// sized writes a token with the length of what fill writes in front.
func (w *writer) sized(token byte, fill func(*writer)) {
	in := &writer{}
	fill(in)
	w.b = append(w.b, token)
	w.u16(len(in.b))
	w.b = append(w.b, in.b...)
}

func (w *writer) loginAck() {
	w.sized(tokenLoginAck, func(w *writer) {
		w.b = append(w.b, 1, 0x74, 0, 0, 4)
		w.short("tdstest")
		w.b = append(w.b, 13, 0, 0, 0)
	})
}

// transaction tells that a transaction has begun or ended; there is one at a
// time, so all have one number.
func (w *writer) transaction(what byte) {
	number := []byte{8, 1, 0, 0, 0, 0, 0, 0, 1}
	w.sized(tokenEnv, func(w *writer) {
		w.b = append(w.b, what)
		if what == envBegin {
			w.b = append(append(w.b, number...), 0)
		} else {
			w.b = append(append(w.b, 0), number...)
		}
	})
}

func (w *writer) fault(e *Error) {
	w.sized(tokenError, func(w *writer) {
		w.u32(int(e.Number))
		w.b = append(w.b, max(e.State, 1), max(e.Class, 14))
		b := ucs2(e.Message)
		w.u16(len(b) / 2)
		w.b = append(w.b, b...)
		w.short("tdstest")
		w.short(e.Procedure)
		w.u32(int(e.Line))
	})
}

func (w *writer) done(token byte, status uint16, count int) {
	w.b = append(w.b, token)
	w.u16(int(status))
	w.u16(0)
	w.b = binary.LittleEndian.AppendUint64(w.b, uint64(count))
}

// rows writes a result whose columns are all nvarchar(4000).
func (w *writer) rows(columns []string, rows [][]any) {
	w.b = append(w.b, tokenColumns)
	w.u16(len(columns))
	for _, name := range columns {
		w.u32(0)
		w.u16(1) // may be NULL
		w.b = append(w.b, typeNVarChar)
		w.u16(8000)
		w.b = append(w.b, make([]byte, collation)...)
		w.short(name)
	}
	for _, row := range rows {
		w.b = append(w.b, tokenRow)
		for _, v := range row {
			if v == nil {
				w.u16(0xFFFF)
				continue
			}
			b := ucs2(fmt.Sprint(v))
			w.u16(len(b))
			w.b = append(w.b, b...)
		}
	}
}
