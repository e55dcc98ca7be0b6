package webhooks

import (
	"fmt"
	"net/netip"
	"syscall"
)

// private lists the address ranges of private networks, which a setting allows. Networks for benchmarks
// (198.18.0.0/15, 2001:2::/48) are treated like private networks.
var private = prefixes(
	"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "127.0.0.0/8", "::1/128", "fc00::/7", "100.64.0.0/10", "198.18.0.0/15", "2001:2::/48",
)

// never lists the ranges in which no webhook may be: link-local addresses, at which clouds serve their metadata,
// multicast addresses, and ranges that IANA's special-purpose registries reserve. The registries are
// https://www.iana.org/assignments/iana-ipv4-special-registry and …/iana-ipv6-special-registry.
var never = prefixes(
	"0.0.0.0/8", "::/128", "169.254.0.0/16", "fe80::/10", "fec0::/10", "fd00:ec2::/32", "100.100.100.200/32", "192.0.0.0/24", "168.63.129.16/32",
	"192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "2001:db8::/32", "192.88.99.0/24", "224.0.0.0/4", "240.0.0.0/4", "ff00::/8",
	"64:ff9b:1::/48",             // NAT64 of a network of its own, whose bytes of the IPv4 address nobody else knows
	"::ffff:0:0:0/96",            // IPv4-translated
	"100::/64", "100:0:0:1::/64", // discarded, dummy
	"3fff::/20", // documentation
	"5f00::/16", // segment routing
)

// protocols is the range for IETF protocols, such as Teredo, whose addresses contain an IPv4 address. Only the
// ranges in reachable are globally reachable. ORCHIDv2 (2001:20::/28) contains identifiers that cannot be
// routed.
var (
	protocols = netip.MustParsePrefix("2001::/23")
	reachable = prefixes("2001:1::1/128", "2001:1::2/128", "2001:1::3/128", "2001:3::/32", "2001:4:112::/48", "2001:30::/28")
)

// global is the range that is assigned as global unicast in IPv6. All other ranges are reserved.
var global = netip.MustParsePrefix("2000::/3")

// tunnels lists the ranges whose addresses contain an IPv4 address, with the offset of the IPv4 address in
// bytes.
var tunnels = map[netip.Prefix]int{
	netip.MustParsePrefix("64:ff9b::/96"): 12, // NAT64
	netip.MustParsePrefix("2002::/16"):    2,  // 6to4
}

// isatap reports whether an address has an ISATAP interface identifier. Such an address leads to the IPv4
// address in its last bytes, whatever the prefix is.
func isatap(a netip.Addr) bool {
	bytes := a.As16()
	return a.Is6() && bytes[8]&^2 == 0 && bytes[9] == 0 && bytes[10] == 0x5e && bytes[11] == 0xfe
}

func prefixes(texts ...string) (all []netip.Prefix) {
	for _, text := range texts {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

func within(a netip.Addr, all []netip.Prefix) bool {
	for _, p := range all {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// allowed returns an error if an address must not be dialled. plain means a connection without TLS, which is
// allowed to this machine only. privately means that the settings allow private addresses.
func allowed(a netip.Addr, plain, privately bool) error {
	a = a.Unmap().WithZone("")
	switch inside, holds := embedded(a); {
	case plain && !a.IsLoopback():
		return fmt.Errorf("the address %s is reached without TLS, and is not this machine: use https", a)
	case within(a, never), isatap(a):
		return fmt.Errorf("the address %s is none that webhooks may have: it is of the link, of a group, or kept for other uses", a)
	case within(a, private) && privately:
		return nil
	case within(a, private):
		return fmt.Errorf("the address %s is private: only --webhook-allow-private lets webhooks have such", a)
	case holds:
		return allowed(inside, plain, privately)
	case a.Is6() && !global.Contains(a), protocols.Contains(a) && !within(a, reachable):
		return fmt.Errorf("the address %s is none that webhooks may have: it is not global unicast", a)
	}
	return nil
}

// embedded returns the IPv4 address to which an IPv6 address leads.
func embedded(a netip.Addr) (inside netip.Addr, holds bool) {
	for p, at := range tunnels {
		if p.Contains(a) {
			bytes := a.As16()
			return netip.AddrFrom4([4]byte(bytes[at : at+4])), true
		}
	}
	return inside, false
}

// control is a net.Dialer.Control. It checks the address of the connection after the name was resolved.
func control(plain, privately bool) func(network, address string, _ syscall.RawConn) error {
	return func(_, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil {
			return fmt.Errorf("dial %s: %w", address, err)
		}
		return allowed(to.Addr(), plain, privately)
	}
}
