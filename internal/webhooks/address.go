package webhooks

import (
	"fmt"
	"net/netip"
	"syscall"
)

// private are addresses of networks that are not the internet's. A setting allows them.
var private = prefixes("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "127.0.0.0/8", "::1/128", "fc00::/7", "100.64.0.0/10", "198.18.0.0/15")

// never are addresses that no webhook has: of the link, where clouds have their metadata, of groups, and
// those that are kept for other uses.
var never = prefixes(
	"0.0.0.0/8", "::/128", "169.254.0.0/16", "fe80::/10", "fec0::/10", "fd00:ec2::/32", "100.100.100.200/32", "192.0.0.0/24", "168.63.129.16/32",
	"192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "2001:db8::/32", "192.88.99.0/24", "224.0.0.0/4", "240.0.0.0/4", "ff00::/8", "100::/64",
)

// tunnels are addresses that hold an IPv4 address, and at which byte.
var tunnels = map[netip.Prefix]int{
	netip.MustParsePrefix("64:ff9b::/96"):   12, // NAT64
	netip.MustParsePrefix("64:ff9b:1::/48"): 12,
	netip.MustParsePrefix("2002::/16"):      2, // 6to4
	netip.MustParsePrefix("::/96"):          12,
}

// teredo hides an IPv4 address, inverted.
var teredo = netip.MustParsePrefix("2001::/32")

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

// allowed says why an address must not be dialled. plain: without TLS, which only this machine may be.
// privately: a setting allows private addresses.
func allowed(a netip.Addr, plain, privately bool) error {
	a = a.Unmap().WithZone("")
	switch inside, holds := embedded(a); {
	case plain && !a.IsLoopback():
		return fmt.Errorf("the address %s is reached without TLS, and is not this machine: use https", a)
	case within(a, never), teredo.Contains(a):
		return fmt.Errorf("the address %s is none that webhooks may have: it is of the link, of a group, or kept for other uses", a)
	case within(a, private) && privately:
		return nil
	case within(a, private):
		return fmt.Errorf("the address %s is private: only --webhook-allow-private lets webhooks have such", a)
	case holds:
		return allowed(inside, plain, privately)
	}
	return nil
}

// embedded is the IPv4 address that an IPv6 one leads to.
func embedded(a netip.Addr) (inside netip.Addr, holds bool) {
	for p, at := range tunnels {
		if p.Contains(a) {
			bytes := a.As16()
			return netip.AddrFrom4([4]byte(bytes[at : at+4])), true
		}
	}
	return inside, false
}

// control is net.Dialer's Control. It sees the address that is connected to, after names were looked up.
func control(plain, privately bool) func(network, address string, _ syscall.RawConn) error {
	return func(_, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil {
			return fmt.Errorf("dial %s: %w", address, err)
		}
		return allowed(to.Addr(), plain, privately)
	}
}
