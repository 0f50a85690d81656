package enrich

import (
	"fmt"
	"net"
	"net/netip"
	"syscall"
)

// refused are the blocks of addresses at which nobody of the internet is: those
// of this machine, of private networks and of links, and those kept for other
// uses. Addresses that hold one of IPv4 are judged by that one.
var refused = prefixes(
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24",
	"192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
	"::/128", "::1/128", "64:ff9b:1::/48", "100::/64", "2001:db8::/32", "3fff::/20", "5f00::/16", "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8",
	"2001::/23", // among them Teredo, which tunnels to wherever it says
)

// embedded are the blocks whose addresses hold one of IPv4, and the byte at
// which it begins.
var embedded = []struct {
	block netip.Prefix
	at    int
}{
	{netip.MustParsePrefix("64:ff9b::/96"), 12}, // NAT64
	{netip.MustParsePrefix("2002::/16"), 2},     // 6to4
	{netip.MustParsePrefix("::ffff:0:0:0/96"), 12},
	{netip.MustParsePrefix("::/96"), 12},
}

func prefixes(texts ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(texts))
	for i, t := range texts {
		out[i] = netip.MustParsePrefix(t)
	}
	return out
}

// Public tells whether an address is one of the internet: not of this machine,
// of a private network or a link, nor of a block that is kept for other uses,
// also where it is an address of IPv4 in one of IPv6.
func Public(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	if !a.IsValid() || !a.IsGlobalUnicast() {
		return false
	}
	for _, p := range refused {
		if p.Contains(a) {
			return false
		}
	}
	if a.Is4() {
		return true
	}
	bytes := a.As16()
	for _, e := range embedded {
		if e.block.Contains(a) && !Public(netip.AddrFrom4([4]byte(bytes[e.at:e.at+4]))) {
			return false
		}
	}
	return true
}

// addressError says that a host has an address that is not asked.
type addressError struct{ host, address string }

func (e *addressError) Error() string {
	return fmt.Sprintf("%s has the address %s, which is not one of the internet. If it is right name the host in private: of the fetch", e.host, e.address)
}

// control refuses to connect to an address that is not of the internet. It is
// asked about the very address that is dialled, so that nothing that DNS says
// before or after can get around it.
func control(host string) func(network, address string, _ syscall.RawConn) error {
	return func(_, address string, _ syscall.RawConn) error {
		ip, _, err := net.SplitHostPort(address)
		if err == nil {
			if a, parsed := netip.ParseAddr(ip); parsed == nil && Public(a) {
				return nil
			}
		}
		return &addressError{host: host, address: ip}
	}
}
