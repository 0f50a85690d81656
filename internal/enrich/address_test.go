package enrich

import (
	"net/netip"
	"testing"
)

func TestPublic(t *testing.T) {
	for _, text := range []string{
		"0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "127.0.0.1", "127.255.255.254", "169.254.169.254", "172.16.0.1", "172.31.255.255",
		"192.0.0.1", "192.0.2.1", "192.168.0.1", "198.18.0.1", "198.51.100.1", "203.0.113.9", "224.0.0.1", "239.1.1.1", "240.0.0.1", "255.255.255.255",
		"::", "::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::127.0.0.1", "::7f00:1", "::ffff:0:127.0.0.1", "::ffff:0:a00:1",
		"64:ff9b::127.0.0.1", "64:ff9b::a9fe:a9fe", "64:ff9b::10.0.0.1", "64:ff9b:1::10.0.0.1", "64:ff9b:1::a9fe:a9fe",
		"2002:7f00:1::", "2002:a9fe:a9fe::1", "2002:c0a8:1::", "2001::1", "2001:0:4136:e378:8000:63bf:3fff:fdd2", "2001:db8::1", "100::1", "5f00::1", "3fff::1",
		"fc00::1", "fd12:3456::1", "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1", "ff0e::1",
	} {
		if Public(netip.MustParseAddr(text)) {
			t.Errorf("%s is asked", text)
		}
	}
	for _, text := range []string{
		"1.1.1.1", "8.8.8.8", "100.63.255.255", "100.128.0.1", "172.15.0.1", "172.32.0.1", "192.169.0.1", "198.20.0.1", "223.255.255.255",
		"2606:4700:4700::1111", "2a00:1450:4001::1", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8", "2002:808:808::1",
	} {
		if !Public(netip.MustParseAddr(text)) {
			t.Errorf("%s is refused", text)
		}
	}
	if Public(netip.Addr{}) {
		t.Error("no address is asked")
	}
}

// TestControl: what is dialled is judged, in whatever form it comes.
func TestControl(t *testing.T) {
	for address, ok := range map[string]bool{"8.8.8.8:443": true, "[2606:4700::1]:443": true, "127.0.0.1:80": false, "[::1]:80": false, "[fe80::1%eth0]:80": false, "/run/socket": false, "": false, "localhost:80": false} {
		if err := control("example.com")("tcp", address, nil); (err == nil) != ok {
			t.Errorf("%s: %v", address, err)
		}
	}
}
