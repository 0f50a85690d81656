package calm

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"
)

func TestLinesAreBoundedPerKind(t *testing.T) {
	var out bytes.Buffer
	at := time.Unix(0, 0)
	l := New(slog.New(slog.NewTextHandler(&out, nil)), func() time.Time { return at })
	made := 0
	say := func(kind string, level slog.Level) {
		l.Line(level, kind, func() string { made++; return kind })
	}
	for range 100 {
		say("dead", slog.LevelWarn)
		say("silent", slog.LevelDebug)
	}
	say("wait", slog.LevelInfo)
	if made != Burst+1 {
		t.Errorf("%d lines made, want %d: a kind of its own is not held up", made, Burst+1)
	}
	at = at.Add(1500 * time.Millisecond)
	say("dead", slog.LevelWarn)
	say("dead", slog.LevelWarn)
	if made != Burst+2 || !strings.Contains(out.String(), "left_out=80") {
		t.Errorf("%d lines made; the log says:\n%s", made, out.String())
	}
}
