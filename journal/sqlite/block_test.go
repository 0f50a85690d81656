package sqlite

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfold/hookfold/event"
)

func TestBlockRoundTrip(t *testing.T) {
	want := realisticMany(50)
	want = append(want, &event.Delivery{}, &event.Delivery{Body: []byte{}, Header: http.Header{"A": nil, "B": {}}})
	frames := make([][]byte, len(want))
	for i, d := range want {
		frames[i] = encodeFrame(d)
	}
	frames = append(frames, nil) // removed
	sealed := sealBlock(7, frames)
	got, err := openBlock(7, sealed)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != len(frames) || len(got[len(got)-1]) != 0 {
		t.Fatalf("%d frames, the last of %d bytes, want %d and none", len(got), len(got[len(got)-1]), len(frames))
	}
	var dec decoder
	for i, d := range want {
		back, err := dec.frame(7+event.Position(i), got[i])
		if err != nil {
			t.Fatal(err)
		}
		d.Position = 7 + event.Position(i)
		if diff := cmp.Diff(d, back); diff != "" {
			t.Errorf("delivery %d (-want +got):\n%s", i, diff)
		}
	}
}

func TestBlockThatDoesNotCompress(t *testing.T) {
	body := make([]byte, 5000)
	_, _ = rand.NewChaCha8([32]byte{}).Read(body)
	sealed := sealBlock(1, [][]byte{encodeFrame(&event.Delivery{Body: body})})
	if sealed[1] != methodPlain {
		t.Errorf("method %d, want it plain", sealed[1])
	}
	if _, err := openBlock(1, sealed); err != nil {
		t.Error(err)
	}
}

// Any change to a stored block is seen, as is one in a wrong place.
func TestDamagedBlock(t *testing.T) {
	sealed := sealBlock(9, [][]byte{encodeFrame(realisticMany(1)[0])})
	for i := range sealed {
		bad := bytes.Clone(sealed)
		bad[i] ^= 0x10
		if _, err := openBlock(9, bad); !errors.Is(err, errDamaged) {
			t.Errorf("byte %d changed: %v, want %v", i, err, errDamaged)
		}
		if _, err := openBlock(9, sealed[:i]); !errors.Is(err, errDamaged) {
			t.Errorf("cut to %d bytes: %v, want %v", i, err, errDamaged)
		}
	}
	if _, err := openBlock(10, sealed); !errors.Is(err, errDamaged) {
		t.Errorf("at another position: %v, want %v", err, errDamaged)
	}
}

// FuzzBlock opens a block of arbitrary bytes with a right checksum.
func FuzzBlock(f *testing.F) {
	for _, frames := range [][][]byte{nil, {nil}, {encodeFrame(realisticMany(1)[0]), nil, encodeFrame(&event.Delivery{})}} {
		f.Add(sealBlock(1, frames))
	}
	f.Add([]byte{1, methodPlain, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Add([]byte{1, methodS2, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) >= blockHeaderLen {
			b = bytes.Clone(b)
			binary.LittleEndian.PutUint32(b[2:], checksum(1, b))
			if n, k := binary.Uvarint(b[blockHeaderLen:]); b[1] == methodS2 && k > 0 && n > 1<<22 {
				return // that much is allowed, but slow to try
			}
		}
		frames, err := openBlock(1, b)
		if err != nil {
			return
		}
		again, err := openBlock(1, sealBlock(1, frames))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(frames, again, cmp.Comparer(bytes.Equal)); diff != "" {
			t.Errorf("sealed again (-want +got):\n%s", diff)
		}
		var dec decoder
		for i, frame := range frames {
			if len(frame) > 0 {
				_, _ = dec.frame(1+event.Position(i), frame)
			}
		}
	})
}

// FuzzFrame decodes arbitrary bytes; what can be decoded has one meaning.
func FuzzFrame(f *testing.F) {
	f.Add(encodeFrame(realisticMany(1)[0]))
	f.Add(encodeFrame(&event.Delivery{Header: http.Header{"A": nil, "B": {}, "C": {""}}, Body: []byte{}, Received: time.Unix(1, 2)}))
	f.Add([]byte{0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0x7f})
	f.Fuzz(func(t *testing.T, b []byte) {
		var dec decoder
		d, err := dec.frame(3, b)
		if err != nil {
			return
		}
		again, err := dec.frame(3, encodeFrame(d))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(d, again); diff != "" {
			t.Errorf("encoded again (-want +got):\n%s", diff)
		}
	})
}

func TestProgress(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		var p progress
		want := make(map[event.Position]bool)
		for range r.IntN(30) {
			first := event.Position(1 + r.IntN(40))
			s := span{first, first + event.Position(r.IntN(5)) - 1} // may be empty
			p.add(s)
			for at := s.first; at <= s.last; at++ {
				want[at] = true
			}
		}
		back, err := decodeProgress(p.done, p.encodeAbove())
		if err != nil {
			t.Fatal(err)
		}
		joined := progress{}
		joined.join(back)
		n := int64(joined.done)
		for at := event.Position(1); at < 60; at++ {
			if joined.has(at) != want[at] {
				t.Fatalf("%v has %d: %v, want %v", joined, at, joined.has(at), want[at])
			}
		}
		if n += joined.count(); n != int64(len(want)) {
			t.Fatalf("%v counts %d positions, want %d", joined, n, len(want))
		}
		for i, s := range joined.above {
			if s.first > s.last || i == 0 && s.first <= joined.done+1 || i > 0 && s.first <= joined.above[i-1].last+1 {
				t.Fatalf("%v is not in its shortest form", joined)
			}
		}
	}
}

func FuzzProgress(f *testing.F) {
	f.Add(int64(3), []byte{2, 0, 5, 1})
	f.Fuzz(func(t *testing.T, done int64, above []byte) {
		p, err := decodeProgress(event.Position(done), above)
		if err == nil && !bytes.Equal(p.encodeAbove(), above) && len(p.encodeAbove()) >= len(above) {
			t.Errorf("%v is encoded as %x, not %x", p, p.encodeAbove(), above)
		}
	})
}
