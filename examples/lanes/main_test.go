package main

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/internal/config"
	"github.com/hookfold/hookfold/internal/daemon"
)

// The example's config, with the example's service behind it: each payment counts
// once and in order, though the sender sends every one twice.
func TestTheExample(t *testing.T) {
	dir, secret := t.TempDir(), "whsec_"+base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("k"), 32))
	s, err := open(filepath.Join(dir, "credit.db"), secret)
	if err != nil {
		t.Fatal(err)
	}
	defer s.db.Close()
	server := httptest.NewServer(s)
	defer server.Close()
	text, err := os.ReadFile("lanes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	file := strings.NewReplacer("http://127.0.0.1:9000", server.URL, "sqlite:hookfold.db", "sqlite:"+filepath.Join(dir, "j.db")).Replace(string(text))
	env := map[string]string{"SHOP_TOKEN": "x", "LANE_SECRET": secret}
	cfg, problems := config.Parse("lanes.yaml", []byte(file), config.Options{Env: func(n string) (string, bool) { v, ok := env[n]; return v, ok }})
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	d, err := daemon.Open(t.Context(), cfg, daemon.Options{NoListen: true})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Stop(t.Context())
	if err := d.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, p := range []struct {
		way   string
		cents int
	}{{"out", 50}, {"in", 100}, {"out", 70}, {"out", 70}, {"in", 10}, {"out", 40}} {
		for range 2 {
			body := fmt.Sprintf(`{"id":"p%d","type":"payment.%s","at":"2026-01-01T00:00:00Z","customer":"c","cents":%d}`, i, p.way, p.cents)
			if err := d.Append(t.Context(), &event.Delivery{Source: "shop", Body: []byte(body), Received: time.Now().UTC()}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := d.Drain(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	var cents, refused int
	if err := s.db.QueryRow("select cents, refused from account where customer = 'c'").Scan(&cents, &refused); err != nil {
		t.Fatal(err)
	}
	if cents != 0 || refused != 2 {
		t.Errorf("%d cents, %d refused; want 0 and 2", cents, refused)
	}
	resp, err := http.Post(server.URL+"/credit", "application/json", strings.NewReader(`{"key":"c"}`))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if said, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("without a signature: %d %s", resp.StatusCode, said)
	}
}
