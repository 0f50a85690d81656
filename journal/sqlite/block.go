package sqlite

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/s2"

	"github.com/hookfold/hookfold/event"
)

// A block is the deliveries of one commit, in one row. Its frames are each one
// delivery; a frame of no bytes stands for a delivery that was removed, so the
// position of a frame is always the position of the block plus its index.
//
//	block   = version byte, method byte, checksum (4 bytes, little-endian), data
//	data    = payload, as it is (method 0) or S2-compressed (method 1)
//	payload = uvarint count, then per frame: uvarint length, frame
//	frame   = varint seconds, uvarint nanoseconds (of the receipt, since 1970 UTC),
//	          text source, text path, text query, headers, bytes body
//	headers = uvarint 0 for nil, else number of names + 1, then per name:
//	          text name, uvarint 0 for nil, else number of values + 1, texts
//	text    = uvarint length, the bytes
//	bytes   = uvarint 0 for nil, else length + 1, then the bytes
//
// The checksum is CRC-32C over the block's position (8 bytes, little-endian),
// version, method and data, and is checked before anything else is read.
const (
	blockVersion   = 1
	methodPlain    = 0
	methodS2       = 1
	blockHeaderLen = 6

	// maxPayload is the most a block may hold uncompressed. It bounds the
	// largest delivery too.
	maxPayload = 256 << 20
)

var (
	errDamaged = errors.New("damaged block")
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
)

// sealBlock makes the stored form of frames whose first has position first.
func sealBlock(first event.Position, frames [][]byte) []byte {
	size := binary.MaxVarintLen64
	for _, f := range frames {
		size += len(f) + binary.MaxVarintLen32
	}
	payload := binary.AppendUvarint(make([]byte, 0, size), uint64(len(frames)))
	for _, f := range frames {
		payload = appendText(payload, f)
	}
	block := make([]byte, blockHeaderLen+s2.MaxEncodedLen(len(payload)))
	block[0], block[1] = blockVersion, methodS2
	data := s2.EncodeBetter(block[blockHeaderLen:], payload)
	if len(data) >= len(payload) {
		block[1] = methodPlain
		data = block[blockHeaderLen : blockHeaderLen+copy(block[blockHeaderLen:], payload)]
	}
	block = block[:blockHeaderLen+len(data)]
	binary.LittleEndian.PutUint32(block[2:], checksum(first, block))
	return block
}

// openBlock returns the frames of a block, which share memory of their own.
func openBlock(first event.Position, block []byte) ([][]byte, error) {
	if len(block) < blockHeaderLen {
		return nil, fmt.Errorf("%w: %d bytes are too few", errDamaged, len(block))
	}
	if got, want := checksum(first, block), binary.LittleEndian.Uint32(block[2:]); got != want {
		return nil, fmt.Errorf("%w: its checksum is %08x, not %08x", errDamaged, got, want)
	}
	if block[0] != blockVersion {
		return nil, fmt.Errorf("block of format %d; this program reads format %d: use a newer Hookfold", block[0], blockVersion)
	}
	payload := block[blockHeaderLen:]
	switch block[1] {
	case methodPlain:
	case methodS2:
		n, err := s2.DecodedLen(payload)
		if err != nil || n > maxPayload+binary.MaxVarintLen64 {
			return nil, fmt.Errorf("%w: it says it holds %d bytes: %v", errDamaged, n, err)
		}
		if payload, err = s2.Decode(nil, payload); err != nil {
			return nil, fmt.Errorf("%w: %v", errDamaged, err)
		}
	default:
		return nil, fmt.Errorf("block compressed by method %d: use a newer Hookfold", block[1])
	}
	r := reader{b: payload}
	n := r.uvarint()
	if n > uint64(len(payload)) { // each frame takes a byte at least
		return nil, fmt.Errorf("%w: it says it holds %d deliveries", errDamaged, n)
	}
	frames := make([][]byte, n)
	for i := range frames {
		frames[i] = r.take(r.uvarint())
	}
	if r.failed || len(r.b) != 0 {
		return nil, fmt.Errorf("%w: its frames do not fill it", errDamaged)
	}
	return frames, nil
}

func checksum(first event.Position, block []byte) uint32 {
	var head [10]byte
	binary.LittleEndian.PutUint64(head[:], uint64(first))
	head[8], head[9] = block[0], block[1]
	return crc32.Update(crc32.Checksum(head[:], castagnoli), castagnoli, block[blockHeaderLen:])
}

// encodeFrame makes the frame of a delivery.
func encodeFrame(d *event.Delivery) []byte {
	size := 64 + len(d.Source) + len(d.Path) + len(d.Query) + len(d.Body)
	for name, values := range d.Header {
		size += len(name) + 8
		for _, v := range values {
			size += len(v) + 4
		}
	}
	b := binary.AppendVarint(make([]byte, 0, size), d.Received.Unix())
	b = binary.AppendUvarint(b, uint64(d.Received.Nanosecond()))
	b = appendText(b, d.Source)
	b = appendText(b, d.Path)
	b = appendText(b, d.Query)
	return appendBytes(appendHeader(b, d.Header), d.Body)
}

func appendText[T string | []byte](b []byte, s T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendHeader(b []byte, h http.Header) []byte {
	if h == nil {
		return append(b, 0)
	}
	b = binary.AppendUvarint(b, uint64(len(h))+1)
	for _, name := range slices.Sorted(maps.Keys(h)) {
		b = appendText(b, name)
		values := h[name]
		if values == nil {
			b = append(b, 0)
			continue
		}
		b = binary.AppendUvarint(b, uint64(len(values))+1)
		for _, v := range values {
			b = appendText(b, v)
		}
	}
	return b
}

func appendBytes(b, body []byte) []byte {
	if body == nil {
		return append(b, 0)
	}
	b = binary.AppendUvarint(b, uint64(len(body))+1)
	return append(b, body...)
}

// decoder decodes frames. It keeps the short texts it has seen, since names
// and values of headers come again in every delivery. The zero decoder is
// ready; it is for one goroutine.
type decoder struct{ seen map[string]string }

const (
	maxSeen    = 1024 // texts that a decoder keeps
	maxSeenLen = 128  // bytes of the longest text it keeps
)

// frame decodes the delivery at a position. The delivery shares no memory with
// the frame.
func (c *decoder) frame(p event.Position, frame []byte) (*event.Delivery, error) {
	r := reader{b: frame}
	d := &event.Delivery{Position: p}
	sec, nsec := r.varint(), r.uvarint()
	if nsec >= 1e9 {
		r.failed = true
	} else {
		d.Received = time.Unix(sec, int64(nsec)).UTC()
	}
	d.Source, d.Path, d.Query = c.text(&r), c.text(&r), c.text(&r)
	d.Header, d.Body = c.header(&r), r.bytes()
	if r.failed || len(r.b) != 0 {
		return nil, fmt.Errorf("%w: delivery #%d cannot be read", errDamaged, p)
	}
	return d, nil
}

func (c *decoder) header(r *reader) http.Header {
	n := r.count()
	if n < 0 {
		return nil
	}
	h := make(http.Header, n)
	for range n {
		name := c.text(r)
		var values []string
		if m := r.count(); m >= 0 {
			values = make([]string, m)
			for i := range values {
				values[i] = c.text(r)
			}
		}
		h[name] = values
	}
	return h
}

func (c *decoder) text(r *reader) string {
	b := r.take(r.uvarint())
	if len(b) == 0 || len(b) > maxSeenLen {
		return string(b)
	}
	if s, ok := c.seen[string(b)]; ok {
		return s
	}
	if c.seen == nil || len(c.seen) >= maxSeen {
		c.seen = make(map[string]string)
	}
	s := strings.Clone(string(b))
	c.seen[s] = s
	return s
}

// reader reads the parts of a payload. After the first that is not there it
// has failed, and reads only zeros.
type reader struct {
	b      []byte
	failed bool
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.b, r.failed = nil, true
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) varint() int64 {
	v, n := binary.Varint(r.b)
	if n <= 0 {
		r.b, r.failed = nil, true
		return 0
	}
	r.b = r.b[n:]
	return v
}

// count reads a number of things stored as that plus one; -1 is nil. Each of
// them takes a byte at least.
func (r *reader) count() int {
	n := r.uvarint()
	if n > uint64(len(r.b))+1 {
		r.b, r.failed = nil, true
		return -1
	}
	return int(n) - 1
}

func (r *reader) take(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.b, r.failed = nil, true
		return nil
	}
	b := r.b[:n:n]
	r.b = r.b[n:]
	return b
}

// bytes returns a copy.
func (r *reader) bytes() []byte {
	n := r.uvarint()
	if n == 0 {
		return nil
	}
	body := r.take(n - 1)
	if r.failed {
		return nil
	}
	return append(make([]byte, 0, len(body)), body...)
}
