//! Addresses that belong to this machine, its network or nobody: what the outside must not make Kiwi ask.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What kind of internal address this is, if it is one. Forms that stand for another address are seen through.
pub(crate) fn internal(address: IpAddr) -> Option<&'static str> {
    match plain(address) {
        IpAddr::V4(v4) => internal_v4(v4),
        IpAddr::V6(v6) => internal_v6(v6),
    }
}

/// The IPv4 address itself where it is written as an IPv6 one that means the same to the system.
pub(crate) fn plain(address: IpAddr) -> IpAddr {
    address.to_canonical()
}

fn internal_v4(address: Ipv4Addr) -> Option<&'static str> {
    let [a, b, c, _] = address.octets();
    Some(match (a, b, c) {
        _ if is_metadata(address) => "a cloud metadata",
        (0, ..) => "an unspecified",
        (10, ..) | (172, 16..=31, _) | (192, 168, _) => "a private",
        (100, 64..=127, _) => "a shared (carrier-grade NAT)",
        (127, ..) => "a loopback",
        (169, 254, _) => "a link-local",
        (192, 0, 2) | (198, 51, 100) | (203, 0, 113) => "a documentation",
        (192, 0, 0) | (192, 88, 99) | (198, 18..=19, _) => "a reserved",
        (224..=239, ..) => "a multicast",
        _ if address.is_broadcast() => "a broadcast",
        (240.., ..) => "a reserved",
        _ => return None,
    })
}

/// Where clouds tell a machine its secrets; not all of them stand inside an internal network.
fn is_metadata(address: Ipv4Addr) -> bool {
    matches!(
        address.octets(),
        [169, 254, 169, 254]
            | [169, 254, 170, 2]
            | [100, 100, 100, 200]
            | [192, 0, 0, 192]
            | [168, 63, 129, 16]
    )
}

fn internal_v6(address: Ipv6Addr) -> Option<&'static str> {
    let inside = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        Ipv4Addr::new(a, b, c, d)
    };
    Some(match address.segments() {
        _ if address.is_unspecified() => "an unspecified",
        _ if address.is_loopback() => "a loopback",
        // NAT64 and 6to4: whoever translates them reaches the IPv4 address inside.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => {
            return internal_v4(inside(high, low));
        }
        [0x64, 0xff9b, 1, ..] | [0xfc00..=0xfdff | 0xfec0..=0xfeff, ..] => "a private",
        // IPv4-compatible: long given up, still understood here and there.
        [0, 0, 0, 0, 0, 0, high, low] => return internal_v4(inside(high, low)).or(Some("a reserved")),
        [0xfe80..=0xfebf, ..] => "a link-local",
        [0xff00..=0xffff, ..] => "a multicast",
        [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => "a documentation",
        // Teredo, benchmarking, ORCHID and the rest of what is kept for protocols.
        [0x2001, 0..=0x1ff, ..] => "a reserved",
        [0x2000..=0x3fff, ..] => return None,
        _ => "a reserved",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_address_is_known() {
        let table = [
            (
                "a loopback",
                "127.0.0.1 127.255.255.254 ::1 ::ffff:127.0.0.1 ::127.0.0.1 64:ff9b::7f00:1 2002:7f00:1::1",
            ),
            ("a private", "10.0.0.1 10.255.255.255 172.16.0.1 172.31.255.255 192.168.0.1 fc00::1 fdff::1"),
            ("a private", "::ffff:10.0.0.1 64:ff9b::a00:1 2002:c0a8:101:: 64:ff9b:1::1 fec0::1"),
            ("a shared (carrier-grade NAT)", "100.64.0.1 100.127.255.255 ::ffff:100.64.0.1"),
            ("a link-local", "169.254.0.1 169.254.255.255 fe80::1 febf::1 ::ffff:169.254.1.1"),
            ("a cloud metadata", "169.254.169.254 169.254.170.2 100.100.100.200 192.0.0.192 168.63.129.16"),
            ("a cloud metadata", "::ffff:169.254.169.254 64:ff9b::a9fe:a9fe 2002:a9fe:a9fe::"),
            ("a private", "fd00:ec2::254"),
            ("an unspecified", "0.0.0.0 0.1.2.3 :: ::ffff:0.0.0.0"),
            ("a multicast", "224.0.0.1 239.255.255.255 ff02::1"),
            ("a broadcast", "255.255.255.255"),
            ("a documentation", "192.0.2.1 198.51.100.1 203.0.113.1 2001:db8::1 3fff::1"),
            (
                "a reserved",
                "192.0.0.1 192.88.99.1 198.18.0.1 198.19.255.255 240.0.0.1 2001::1 100::1 5f00::1 4000::1 ::8.8.8.8",
            ),
        ];
        for (kind, addresses) in table {
            for address in addresses.split(' ') {
                assert_eq!(internal(address.parse().unwrap()), Some(kind), "{address}");
            }
        }
        let outside = "8.8.8.8 1.1.1.1 172.15.0.1 172.32.0.1 100.63.255.255 100.128.0.1 126.0.0.1 128.0.0.1 169.253.0.1 \
             192.167.0.1 198.17.0.1 198.20.0.1 223.255.255.255 2606:4700::1111 2a00:1450::1 2001:4860:4860::8888 \
             ::ffff:8.8.8.8 64:ff9b::808:808 2002:808:808::1";
        for address in outside.split_whitespace() {
            assert_eq!(internal(address.parse().unwrap()), None, "{address}");
        }
    }
}
